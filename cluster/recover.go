package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// recovery is how a job goes on when a node dies, or after it died itself: from the newest checkpoint, under the newest
// owners, with what the log has routed since. Nodes start anew; groups come to them from control as from any other owner.
type recovery struct {
	term      uint64
	index     uint64 // of the next record of the log
	logged    uint64 // records before this one are of what this job has done
	parts     uint64 // of checkpoints that were begun in this term
	chain     []uint64
	full      int64 // bytes of the first of the chain, and of those after it
	since     int64
	due       int64 // when the next checkpoint is
	pending   *pending
	last      bool                    // the one at the end is done
	restoring map[reconfig.Group]bool // groups on their way from control
	again     uint64                  // events before this one may end twice
	replayed  uint64                  // batches before this one do again what was done
	ended     int64                   // events that had ended when a node died last
	tries     int                     // how often that happened with no more of them
	skip      uint64                  // events that the source delivers once more
}

// pending is a checkpoint that nodes are saving.
type pending struct {
	Checkpoint
	waits     map[reconfig.Node]bool
	later     storage.Hash // of results behind it
	committed int          // and those of them that committed
	all       bool
	bytes     int64
}

// nodeError tells that a node is at its end before its time.
type nodeError struct {
	node reconfig.Node
	why  error
}

func (e *nodeError) Error() string { return fmt.Sprintf("node %d: %v", e.node, e.why) }
func (e *nodeError) Unwrap() error { return e.why }

// triesMax is how often nodes may die without any event that ended in between.
const triesMax = 3

// survive makes the job go on after an error of a node, or returns the error.
func (j *Job) survive(err error) error {
	var dead *nodeError
	for errors.As(err, &dead) && j.o.Keep != nil {
		r := &j.recovery
		if n := j.out.Latency.TotalCount(); n > r.ended {
			r.ended, r.tries = n, 0
		}
		if r.tries++; r.tries > triesMax {
			return err
		}
		j.out.Recoveries++
		if j.o.Failed != nil {
			j.o.Failed(err)
		}
		err = j.revive(err)
		dead = nil
	}
	return err
}

// revive starts the nodes anew.
func (j *Job) revive(cause error) error {
	if err := j.runtime.Reset(); err != nil {
		return errors.Join(cause, err)
	}
	_, _ = j.box.Take(nil) // nobody is left who sent it
	r := &j.recovery
	if p := r.pending; p != nil {
		j.sums.Sum(p.later)
		j.out.Committed += p.committed
		r.pending = nil
	}
	clear(j.progress)
	clear(j.leaving)
	clear(j.starting)
	j.change, j.up, j.finals, j.out.State = Change{}, 0, 0, storage.Hash{}
	j.control.interrupted()
	return j.resume()
}

// resume starts nodes where the newest checkpoint and the log say that the job is, and routes what the log has.
func (j *Job) resume() error {
	r, keep := &j.recovery, j.o.Keep
	term, c, err := keep.Begin()
	if err != nil {
		return err
	}
	r.term, r.parts, r.chain, r.due = term, 0, nil, clock.NowNanos()+int64(j.o.Checkpoints)
	restores := c != nil
	if c == nil {
		c = j.initial
	}
	if j.owners, err = reconfig.OwnersOf(c.Version, c.Owners); err != nil {
		return err
	}
	if j.out.Latency.TotalCount() == 0 && j.seq == 0 { // a job that died itself
		j.seq, r.skip, j.resumed = c.Seq, c.Seq, c.Seq
		j.sums, j.out.Committed = c.Results, c.Committed
	}
	r.index, j.free = c.Index, max(j.free, c.Free)
	nodes := c.Nodes
	err = keep.Records(c.Index, func(src []byte) error {
		rec, err := readRecord(src)
		if err != nil {
			return err
		}
		nodes, j.free = rec.nodes, max(j.free, rec.free)
		if len(rec.moves) > 0 {
			j.owners, err = j.owners.Moved(rec.moves)
		}
		return err
	})
	if err != nil {
		return err
	}
	j.settings = j.settings.Then(c.Settings)
	for name, variant := range c.Settings.Logic {
		if err := j.app.SetLogic(name, variant); err != nil {
			return err
		}
	}
	if err := j.startAll(nodes, restores); err != nil {
		return &nodeError{nodes[0], err}
	}
	r.again = j.seq
	if restores {
		if err := j.restoreRows(c); err != nil {
			return err
		}
	}
	err = j.replay(c)
	r.replayed = j.batch
	return err
}

// startAll starts the nodes of a job, which own what its owners say.
func (j *Job) startAll(nodes []reconfig.Node, restores bool) error {
	j.nodes = nil
	j.newRouter(nodes)
	for _, n := range nodes {
		j.startNode(n)
	}
	for {
		if waits, err := j.startedAll(nodes); err != nil {
			return err
		} else if !waits {
			break
		}
		<-j.box.Bell()
		if err := j.takeAll(); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := j.join(n, restores); err != nil {
			return err
		}
	}
	return nil
}

// restoreRows sends the rows of a checkpoint to the owners of their groups: as copies, the oldest first, and then images
// that have nothing to add.
func (j *Job) restoreRows(c *Checkpoint) error {
	r := &j.recovery
	r.restoring = map[reconfig.Group]bool{}
	sent, base := make([]uint64, j.owners.Groups()), make([]int, j.owners.Groups())
	for i, part := range c.Parts {
		err := j.o.Keep.Pieces(part, func(p *Piece) error {
			for _, g := range p.Whole {
				base[int(g)%len(base)] = i
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, part := range c.Parts {
		err := j.o.Keep.Pieces(part, func(p *Piece) error {
			by := map[reconfig.Group][]Row{}
			for _, row := range p.Rows {
				if g := j.owners.GroupOf(reconfig.KeyHash(row.Key)); i >= base[g] {
					by[g] = append(by[g], row)
				}
			}
			for g, rows := range by {
				sent[g] += uint64(len(rows))
				if err := j.runtime.Send(j.owners.Of(g), &CopyRows{From: Control, Group: g, Order: 1, Rows: rows}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for g, rows := range sent {
		g := reconfig.Group(g)
		r.restoring[g] = true
		m := &Image{From: Control, Group: g, Version: j.owners.Version(), Copied: rows}
		if rows > 0 {
			m.Order = 1
		}
		if err := j.runtime.Send(j.owners.Of(g), m); err != nil {
			return err
		}
	}
	return nil
}

// replay routes what the log has behind a checkpoint.
func (j *Job) replay(c *Checkpoint) error {
	return j.o.Keep.Records(c.Index, func(src []byte) error {
		rec, err := readRecord(src)
		if err != nil {
			return err
		}
		j.recovery.index = rec.index + 1
		for j.behind() >= batchesAhead {
			<-j.box.Bell()
			if err := j.takeAll(); err != nil {
				return err
			}
		}
		j.feed.Reset()
		if err := rec.push(j.feed); err != nil {
			return err
		}
		if known := rec.seq+uint64(rec.count) <= j.seq; !known { // a job that died itself
			now := clock.NowNanos()
			j.flight.add(rec.seq, rec.count, now, now)
			j.seq = rec.seq + uint64(rec.count)
			j.recovery.skip, j.resumed = j.seq, j.seq
		}
		ch := Change{Settings: rec.settings, Settle: len(rec.settings.Logic) > 0}
		known := rec.index < j.recovery.logged
		j.recovery.logged = max(j.recovery.logged, rec.index+1)
		if err := j.setLogic(&ch, rec.seq, known); err != nil {
			return err
		}
		err = j.router.Route(j.batch, j.feed, 0, j.feed.Len(), rec.seq, ch, j.runtime)
		j.batch++
		return err
	})
}

// done reports whether nothing of the batches before one is under way.
func (j *Job) done(batch uint64) bool {
	return len(j.recovery.restoring) == 0 && !slices.ContainsFunc(j.nodes, func(n reconfig.Node) bool { return j.progress[n].Done < batch })
}

// saves begins a checkpoint when one is due, and reports whether the last one is done.
func (j *Job) saves(now int64, over bool) (done bool) {
	r := &j.recovery
	if j.o.Keep == nil || over && r.last {
		return true
	}
	if r.pending != nil || !j.done(r.replayed) || !over && now < r.due || j.change.Save > 0 || over && (j.control.busy() || j.flight.len() > 0) {
		return false
	}
	r.due = now + int64(j.o.Checkpoints)
	r.parts++
	p := &pending{Checkpoint: Checkpoint{Parts: []uint64{r.term<<32 | r.parts}}, waits: map[reconfig.Node]bool{}}
	p.all = len(r.chain) == 0 || r.since > r.full
	if !p.all {
		p.Parts = append(slices.Clone(r.chain), p.Parts...)
	}
	r.pending = p
	j.change.Save, j.change.SaveAll, j.change.Settle = p.Parts[len(p.Parts)-1], p.all, true
	return false
}

// cut fills in where a checkpoint stands, which goes out with the next batch.
func (j *Job) cut() {
	p := j.recovery.pending
	p.Index, p.Seq, p.Settings, p.Nodes, p.Version, p.Free = j.recovery.index, j.seq, j.settings, slices.Clone(j.nodes), j.owners.Version(), j.free
	for g := range j.owners.Groups() {
		p.Owners = append(p.Owners, j.owners.Of(reconfig.Group(g)))
	}
	for _, n := range j.nodes {
		p.waits[n] = true
	}
}

// saved takes note that a node has saved its part, and commits the checkpoint with the last of them. No result of what was
// before its cut comes after that.
func (j *Job) saved(m *Progress) error {
	r := &j.recovery
	p := r.pending
	if p == nil || p.Parts[len(p.Parts)-1] != m.Saved {
		return nil
	}
	p.bytes += m.Bytes
	if delete(p.waits, m.From); len(p.waits) > 0 {
		return nil
	}
	p.Results, p.Committed = j.sums, j.out.Committed
	if err := j.o.Keep.Commit(&p.Checkpoint); err != nil {
		return err
	}
	if r.since += p.bytes; p.all {
		r.full, r.since = p.bytes, 0
	}
	r.chain, r.pending = p.Parts, nil
	j.sums.Sum(p.later)
	j.out.Committed += p.committed
	j.out.Checkpoints++
	r.last = j.ended && p.Seq == j.seq
	return nil
}

// log keeps what a batch routes, if that is anything.
func (j *Job) log(c *Change) error {
	if j.o.Keep == nil || j.feed.Len() == 0 && len(c.Moves) == 0 && c.Settings.IsZero() {
		return nil
	}
	r := &j.recovery
	var w writer
	w.numbers(r.index, j.seq, node(j.free), uint64(len(j.nodes)))
	for _, n := range j.nodes {
		w.numbers(node(n))
	}
	w.moves(c.Moves)
	w.settings(&c.Settings)
	w.numbers(uint64(j.feed.Len()))
	for i := range j.feed.Len() {
		j.buf = j.feed.AppendEvent(j.buf[:0], i)
		w.numbers(uint64(j.feed.EventType(i)))
		w.bytes(j.buf)
	}
	r.index++
	r.logged = r.index
	return j.o.Keep.Log(r.index-1, w)
}

// record is what the log has of a batch.
type record struct {
	index, seq uint64
	free       reconfig.Node
	nodes      []reconfig.Node
	moves      []reconfig.Move
	settings   reconfig.Settings
	count      int
	events     []byte
}

func readRecord(src []byte) (*record, error) {
	r := &reader{src: bytes.Clone(src)}
	rec := &record{index: r.uint64(), seq: r.uint64(), free: r.node()}
	for range r.count(1) {
		rec.nodes = append(rec.nodes, r.node())
	}
	rec.moves, rec.settings = r.moves(), r.settings()
	rec.count = r.count(2)
	if rec.events = r.src; r.err != nil || len(rec.nodes) == 0 {
		return nil, errors.New("a record of the log that cannot be read")
	}
	return rec, nil
}

// push puts the events of the record into a feed.
func (rec *record) push(f *txn.Feed) error {
	r := &reader{src: rec.events}
	for i := range rec.count {
		typ, event := r.number(), r.bytes()
		if r.err != nil {
			return fmt.Errorf("event %d of the log: %w", rec.seq+uint64(i), r.err)
		}
		if _, err := f.PushEncoded(typ, event); err != nil {
			return fmt.Errorf("event %d of the log: %w", rec.seq+uint64(i), err)
		}
	}
	return nil
}
