package job

import (
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/plan"
)

// Partitions is into how many partitions work is cut where keys allow it. It does not depend
// on the workers, who take one after the other: more partitions than workers even out hot keys.
const Partitions = 8

// pass is what passes have in common.
type pass struct {
	name  string
	about string
	needs []plan.PropID
}

func (p pass) Name() string         { return p.name }
func (p pass) Needs() []plan.PropID { return p.needs }

// About says what the pass does, in one line.
func (p pass) About() string { return p.about }

// annotating is a pass that sets properties.
type annotating struct {
	pass
	sets []plan.PropID
	do   func(v *plan.View) error
}

func (p annotating) Sets() []plan.PropID         { return p.sets }
func (p annotating) Annotate(v *plan.View) error { return p.do(v) }

// reshaping is a pass that changes the graph.
type reshaping struct {
	pass
	do func(s *plan.Shaper) error
}

func (p reshaping) Reshape(s *plan.Shaper) error { return p.do(s) }

// Passes returns all passes, in the order in which they are applied.
func Passes() []plan.Pass {
	return []plan.Pass{
		annotating{pass{"defaults", "begin with batches that are good for most jobs", nil}, []plan.PropID{plan.BatchSize}, defaults},
		reshaping{pass{"common", "compute once what two vertices would compute from the same input", nil}, common},
		reshaping{pass{"partial", "aggregate within partitions before all items meet in one", nil}, partial},
		annotating{pass{"parallelism", "cut work into partitions by key", nil}, []plan.PropID{plan.Parallelism}, parallelism},
		annotating{pass{"fusion", "run in one task what goes from partition to partition", []plan.PropID{plan.Parallelism}}, []plan.PropID{plan.Fuse}, fusion},
		annotating{pass{"slicing", "keep an item of overlapping windows once", nil}, []plan.PropID{plan.SliceNanos}, slicing},
		annotating{pass{"access", "choose the store of windows by how they are written and read", nil}, []plan.PropID{plan.Access}, access},
		annotating{pass{"memory", "divide memory among those who keep windows", []plan.PropID{plan.Access}}, []plan.PropID{plan.MemoryShare}, memory},
	}
}

func defaults(v *plan.View) error {
	for _, x := range v.Vertices() {
		if x.Kind == plan.Source && !plan.BatchSize.Fixed(v.Graph, x.ID) {
			if err := plan.BatchSize.Set(v, x.ID, plan.BatchSize.Default()); err != nil {
				return err
			}
		}
	}
	return nil
}

// common merges vertices until no two are equal.
func common(s *plan.Shaper) error {
	for again := true; again; {
		again = false
		all := s.Vertices()
		for i := range all {
			for k := i + 1; k < len(all) && !again; k++ {
				if all[i].Kind != all[k].Kind {
					continue
				}
				merged, err := s.Merge(all[i].ID, all[k].ID)
				if err != nil {
					return err
				}
				again = merged
			}
		}
	}
	return nil
}

// oneKey reports whether all items that come to a vertex meet in one place.
func oneKey(v plan.Vertex) bool {
	op, ok := v.Op.(interface{ OneKey() bool })
	return ok && op.OneKey()
}

func partial(s *plan.Shaper) error {
	for _, v := range s.Vertices() {
		if !oneKey(v) {
			continue
		}
		for _, e := range s.In(v.ID) {
			if e.Pattern != plan.Shuffle {
				continue
			}
			id := v.ID + ".partial"
			for _, taken := s.Vertex(id); taken; _, taken = s.Vertex(id) {
				id += "'"
			}
			if _, err := s.Split(e.ID, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func parallelism(v *plan.View) error {
	set := map[plan.ID]int{}
	for _, x := range v.Vertices() {
		n := Partitions
		if oneKey(x) {
			n = 1
		}
		for _, e := range v.In(x.ID) {
			if e.Pattern == plan.OneToOne {
				n = set[e.From]
			}
		}
		set[x.ID] = n
		if err := plan.Parallelism.Set(v, x.ID, n); err != nil {
			return err
		}
	}
	return nil
}

func fusion(v *plan.View) error {
	for _, e := range v.Edges() {
		if e.Pattern == plan.OneToOne && len(v.In(e.To)) == 1 {
			if err := plan.Fuse.Set(v, e.ID, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func slicing(v *plan.View) error {
	for _, x := range v.Vertices() {
		if op, ok := x.Op.(interface{ SliceNanos() int64 }); ok && op.SliceNanos() > 0 {
			if err := plan.SliceNanos.Set(v, x.ID, op.SliceNanos()); err != nil {
				return err
			}
		}
	}
	return nil
}

func access(v *plan.View) error {
	for _, x := range v.Vertices() {
		if op, ok := x.Op.(interface{ Access() plan.AccessPattern }); ok && !plan.Access.Fixed(v.Graph, x.ID) {
			if err := plan.Access.Set(v, x.ID, op.Access()); err != nil {
				return err
			}
		}
	}
	return nil
}

func memory(v *plan.View) error {
	var holders []plan.ID
	for _, x := range v.Vertices() {
		if plan.Access.Of(v.Graph, x.ID) != plan.AccessNone {
			holders = append(holders, x.ID)
		}
	}
	for _, id := range holders {
		if err := plan.MemoryShare.Set(v, id, 1/float64(len(holders))); err != nil {
			return err
		}
	}
	return nil
}

// Store returns a pass that fixes how windows of a vertex are written and read: it goes before [Passes].
// Windows that are aggregated may be kept as lists, and aggregated when they fire.
func Store(vertex plan.ID, by plan.AccessPattern) plan.Pass {
	return annotating{pass{"store", fmt.Sprintf("windows of %s in a store for %s access, as asked for", vertex, by), nil}, []plan.PropID{plan.Access}, func(v *plan.View) error {
		x, ok := v.Vertex(vertex)
		op, holds := x.Op.(interface{ CanAccess(plan.AccessPattern) bool })
		if !ok || !holds || !op.CanAccess(by) {
			return fmt.Errorf("there is no vertex %s whose windows can be kept for %s access", vertex, by)
		}
		return plan.Access.Fix(v, vertex, by)
	}}
}

// Strategy returns a pass that fixes by which strategy transactions are executed: a name from schedule.Strategies.
func Strategy(name string) plan.Pass {
	return annotating{pass{"strategy", "execute transactions under " + name + ", as asked for", nil}, []plan.PropID{plan.Strategy}, func(v *plan.View) error {
		found := false
		for _, x := range v.Vertices() {
			if x.Kind != plan.Transaction {
				continue
			}
			found = true
			if err := plan.Strategy.Fix(v, x.ID, name); err != nil {
				return err
			}
		}
		if !found {
			return errors.New("there are no transactions to be executed under " + name)
		}
		return nil
	}}
}

// Batch returns a pass that fixes how many events are between two punctuations.
func Batch(events int) plan.Pass {
	return annotating{pass{"batch", fmt.Sprintf("%d events between two punctuations, as asked for", events), nil}, []plan.PropID{plan.BatchSize}, func(v *plan.View) error {
		for _, x := range v.Vertices() {
			if x.Kind == plan.Source {
				if err := plan.BatchSize.Fix(v, x.ID, events); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}
