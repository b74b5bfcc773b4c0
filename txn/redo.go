package txn

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/arena"
	"github.com/heddle-stream/heddle/internal/codec"
)

// This file does a batch again by its [View]:
//
//	OpenView -> PlanRegion (parallel) -> Seal -> Resolve and link (parallel)
//	-> SeeChains (parallel) -> Take (parallel) -> Chain (parallel) or Order, Level
//	by Level (parallel) -> Emit -> Install -> Whole

// OpenView takes those events of a feed that the view has as committed. It returns what
// the time of an event panics with: where windows go by time all have one.
func (x *Batch) OpenView(v *View, all *Feed) *Panic {
	x.setFeed(all)
	x.openTimes()
	if x.Cut != nil {
		return x.Cut
	}
	if len(v.aborted) > 0 {
		x.leaveOut(v.aborted)
	}
	x.makeRoom()
	return nil
}

// leaveOut takes events out of the batch. The others stay where they are in the feed.
func (x *Batch) leaveOut(aborted []abortedEvent) {
	all := x.feed
	refs, places := x.kept.refs[:0], make([]uint32, 0, all.Len())
	for i, ref := range all.refs {
		if len(aborted) > 0 && aborted[0].event == i {
			aborted = aborted[1:]
			continue
		}
		refs, places = append(refs, ref), append(places, uint32(i))
	}
	x.kept = Feed{app: all.app, id: all.id, refs: refs}
	x.feed, x.places, x.Events = &x.kept, places, len(refs)
}

// Parts returns the number of parts of the view.
func (v *View) Parts() int { return len(v.parts) }

// SeeChains makes each access of a shard see the writer before it in its chain.
func (x *Batch) SeeChains(table, shard int) {
	acc := x.Acc
	for _, id := range x.Chained(table, shard).IDs {
		p := acc[id].Pred
		if acc[id].AtStart() {
			for p != None && acc[p].Event == acc[id].Event {
				p = acc[p].Pred
			}
		}
		x.Src[id] = p
	}
}

// Take reads a part of the view into the batch, which has its committed events.
func (x *Batch) Take(v *View, part int) error {
	lo := 0
	for _, n := range v.counts[:part] {
		lo += n
	}
	src, err := v.parts[part], error(nil)
	for ev := lo; ev < lo+v.counts[part] && err == nil; ev++ {
		for id := x.TxLo[ev]; id < x.TxHi[ev] && err == nil; id++ {
			if x.Acc[id].Writes() {
				src, err = x.takeAccess(v, id, src)
			}
		}
	}
	if err == nil && len(src) != 0 {
		err = fmt.Errorf("%d bytes too many in a view", len(src))
	}
	return err
}

// takeAccess reads what the view has of an operation.
func (x *Batch) takeAccess(v *View, id uint32, src []byte) (rest []byte, err error) {
	a := &x.Acc[id]
	if v.Redo == RedoLevels {
		level, rest, err := number(src)
		if err == nil && level >= len(x.Acc) {
			err = fmt.Errorf("level %d of an operation", level)
		}
		x.levels[id] = uint32(level)
		return rest, err
	}
	kinds := x.bound.App.kinds
	if v.Logged[a.Index()] {
		rest, found, err := kinds[a.Index()].table.readVersion(src, a.Slot)
		if err == nil && !found {
			err = fmt.Errorf("a view has nothing of operation %q", kinds[a.Index()].name)
		}
		return rest, err
	}
	region := int(id) / x.stride
	for _, local := range x.plans[region].refs[a.Refs : a.Refs+uint32(a.NRefs)] {
		read := x.bases[region] + local
		// A read has a slot of its own, in which it then sees what it saw.
		rest, found, err := kinds[x.Acc[read].Index()].table.readVersion(src, x.Acc[read].Slot)
		if err != nil {
			return nil, err
		}
		x.Src[read] = None
		if found {
			x.Src[read] = read
		}
		src = rest
	}
	return src, nil
}

// Chain runs the operations of a shard that the view does not have, in event order.
func (e *Executor) Chain(worker int, v *View, table, shard int) error {
	for _, id := range e.x.Chained(table, shard).IDs {
		if a := &e.x.Acc[id]; a.Writes() && !v.Logged[a.Index()] {
			if err := e.again(worker, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// again runs an operation that committed before.
func (e *Executor) again(worker int, id uint32) error {
	v := e.Operation(worker, id)
	if v == OK {
		return nil
	}
	return fmt.Errorf("event %d: operation %q committed when it ran first, and now says %q: it is not deterministic", e.x.Number(e.x.Acc[id].Event), e.x.OperationName(id), e.x.bound.App.ReasonText(v))
}

// OpenLevels makes room for the levels of the batch.
func (x *Batch) OpenLevels() { x.levels = arena.Resize(x.levels, len(x.Acc)) }

// Order returns the operations that write, by level and then in serial order, and
// where each level begins, one more behind the last.
func (x *Batch) Order() (ids []uint32, begins []int) {
	begins = []int{0}
	each := func(do func(id uint32)) {
		for ev := range x.Events {
			for id := x.TxLo[ev]; id < x.TxHi[ev]; id++ {
				if x.Acc[id].Writes() {
					do(id)
				}
			}
		}
	}
	total := 0
	each(func(id uint32) {
		for len(begins) < int(x.levels[id])+2 {
			begins = append(begins, 0)
		}
		begins[x.levels[id]+1]++
		total++
	})
	for i := 1; i < len(begins); i++ {
		begins[i] += begins[i-1]
	}
	ids = make([]uint32, total)
	next := append([]int(nil), begins...)
	each(func(id uint32) {
		ids[next[x.levels[id]]] = id
		next[x.levels[id]]++
	})
	return ids, begins
}

// Again runs operations that may run at the same time, see Order.
func (e *Executor) Again(worker int, ids []uint32) error {
	for _, id := range ids {
		if err := e.again(worker, id); err != nil {
			return err
		}
	}
	return nil
}

// Whole puts the events that aborted back among those that were done again: from
// now on the batch has the outcomes and results of all of them, and can only be
// asked for these.
func (x *Batch) Whole(v *View, all *Feed) error {
	n := all.Len()
	if n-len(v.aborted) != x.Events {
		return fmt.Errorf("%d events and %d aborted ones, of %d", x.Events, len(v.aborted), n)
	}
	x.feed, x.places = all, nil
	if v.ops > 0 {
		x.Ops = v.ops
	}
	if len(v.aborted) == 0 {
		return nil
	}
	x.texts = make([][]byte, n)
	for len(x.Fail) < n {
		x.Fail = append(x.Fail, committed)
	}
	events := x.bound.App.events
	for _, ev := range events {
		ev.grown(n)
	}
	from, next := x.Events-1, len(v.aborted)-1
	for e := n - 1; e >= 0; e-- {
		if next < 0 || v.aborted[next].event != e {
			if x.Fail[from] != committed {
				return fmt.Errorf("event %d committed when it ran first, and now aborts: an operation is not deterministic", x.First+e)
			}
			events[all.refs[e].typ].moveResult(uint32(from), uint32(e))
			x.Fail[e] = committed
			from--
			continue
		}
		a := &v.aborted[next]
		next--
		x.Fail[e] = uint64(None)<<16 | uint64(a.verdict)
		if len(a.text) > 0 {
			x.texts[e] = a.text
		}
		if err := events[all.refs[e].typ].decodeResult(uint32(e), a.result); err != nil {
			return fmt.Errorf("result of event %d: %w", x.First+e, err)
		}
	}
	x.Events = n
	return nil
}

// grown makes room for the results of a batch, those that are there stay.
func (ev *Event[E, R]) grown(events int) {
	if ev.result != nil {
		for len(ev.out) < events {
			var none R
			ev.out = append(ev.out, none)
		}
	}
}

func (ev *Event[E, R]) moveResult(from, to uint32) {
	if ev.result != nil {
		ev.out[to] = ev.out[from]
	}
}

func (ev *Event[E, R]) decodeResult(event uint32, src []byte) error {
	if ev.result == nil {
		if len(src) != 0 {
			return codec.ErrCorrupt
		}
		return nil
	}
	var r R
	rest, err := ev.output.Decode(src, &r)
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	ev.out[event] = r
	return err
}
