package tpg

import "github.com/heddle-stream/heddle/txn"

// Installer makes the last version in each chain of an executed batch the value
// of its row. One goroutine at a time; its memory is used again.
type Installer struct {
	slots  []uint32
	deltas []uint32
	_      [80]byte // apart from its neighbours
}

// Prepare does what user functions take part in, for the rows of a shard: it merges
// the last deltas and keeps versions for windows. It comes before anything is
// installed, because such a function may panic.
func (in *Installer) Prepare(x *txn.Batch, table, shard int, limit uint32) {
	for _, id := range x.Chained(table, shard).IDs {
		if x.Acc[id].Next == None {
			in.prepare(x, table, id, limit)
		}
	}
}

// PrepareLate does the same for rows whose chains end with an access with a
// computed key, which no shard lists. One goroutine.
func (in *Installer) PrepareLate(x *txn.Batch, exec *txn.Executor, limit uint32) {
	for _, id := range x.Late {
		if exec.Row(id) != None && x.Acc[id].Next == None {
			in.prepare(x, x.TableOf(id), id, limit)
		}
	}
}

func (in *Installer) prepare(x *txn.Batch, table int, id, limit uint32) {
	if w := in.last(x, id, limit); w != None && x.Windowed(table) {
		x.Record(id, limit)
	}
}

// Late installs the rows whose chains end with an access with a computed key. It
// comes before Shard, and is for one goroutine.
func (in *Installer) Late(x *txn.Batch, exec *txn.Executor, limit uint32) {
	for _, id := range x.Late {
		if exec.Row(id) == None || x.Acc[id].Next != None {
			continue
		}
		if w := in.last(x, id, limit); w != None {
			x.InstallVersion(w)
		}
	}
}

// Shard installs, of events before the limit, the last committed version of each
// row that the batch touched in a shard. Different shards may be installed in
// parallel, each by an installer of its own.
func (in *Installer) Shard(x *txn.Batch, table, shard int, limit uint32) {
	slots := in.slots[:0]
	for _, id := range x.Chained(table, shard).IDs {
		if x.Acc[id].Next != None {
			continue
		}
		if w := in.last(x, id, limit); w != None {
			slots = append(slots, x.Acc[w].Slot)
		}
	}
	in.slots = slots
	x.Install(table, shard, slots)
}

// last returns the last committed writer before the limit in the chain that ends
// with an access, with its version in place.
func (in *Installer) last(x *txn.Batch, id, limit uint32) uint32 {
	acc := x.Acc
	w := acc[id].Pred
	if acc[id].Writes() {
		w = id
	}
	for w != None && (acc[w].Event >= limit || !x.Committed(int(acc[w].Event))) {
		w = acc[w].Pred
	}
	if w != None && acc[w].Commutes() {
		in.deltas = x.SettleDeltas(w, limit, in.deltas)
	}
	return w
}
