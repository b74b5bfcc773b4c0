package plan

import "fmt"

// Side is what has a property.
type Side uint8

// Vertices have some properties and edges others.
const (
	OnVertex Side = iota
	OnEdge
)

func (s Side) String() string { return [...]string{"vertex", "edge"}[s] }

// PropID is a property without the type of its values.
type PropID interface {
	Name() string
	Side() Side
	Doc() string
}

// Prop is a property whose values have type T.
type Prop[T comparable] struct {
	name, doc string
	side      Side
	def       T
}

// NewProp declares a property, with what it is when nobody sets it.
func NewProp[T comparable](name string, side Side, def T, doc string) *Prop[T] {
	return &Prop[T]{name, doc, side, def}
}

// Name returns the name of the property.
func (p *Prop[T]) Name() string { return p.name }

// Side returns what has the property.
func (p *Prop[T]) Side() Side { return p.side }

// Doc returns what it means.
func (p *Prop[T]) Doc() string { return p.doc }

// Default returns the value when nobody sets it.
func (p *Prop[T]) Default() T { return p.def }

// Of returns the value that a vertex or an edge has.
func (p *Prop[T]) Of(g *Graph, id ID) T {
	if v, ok := g.settings[setting{id, p.name}]; ok {
		return v.is.(T)
	}
	return p.def
}

// Fixed reports whether a pass fixed the value.
func (p *Prop[T]) Fixed(g *Graph, id ID) bool { return g.settings[setting{id, p.name}].fixed }

// Set gives the property a value, which a later pass may change.
func (p *Prop[T]) Set(v *View, id ID, to T) error { return v.set(p, id, value{is: to, by: v.pass}) }

// Fix gives the property a value that no other pass may change.
func (p *Prop[T]) Fix(v *View, id ID, to T) error {
	return v.set(p, id, value{is: to, by: v.pass, fixed: true})
}

// setting names a property of a vertex or an edge.
type setting struct {
	of   ID
	prop string
}

// value is what a property was set to, and by which pass.
type value struct {
	is    any
	by    string
	fixed bool
}

// The properties that jobs are executed by.
var (
	Parallelism = NewProp("parallelism", OnVertex, 1, "into how many partitions, each with its own state, the work is cut; a power of two")
	Fuse        = NewProp("fuse", OnEdge, false, "whether both vertices run in one task, one batch after the other")
	SliceNanos  = NewProp("slice", OnVertex, int64(0), "length of the slices of which windows consist, so that an item is kept once; 0: each window by itself")
	Access      = NewProp("access", OnVertex, AccessNone, "how windows are written and read, by which their store is chosen")
	MemoryShare = NewProp("memory", OnVertex, 0.0, "the part of the job's memory that contents of windows may take")
	Strategy    = NewProp("strategy", OnVertex, "", "by which the transactions of a batch are executed; empty: as who runs them has it")
	BatchSize   = NewProp("batch", OnVertex, 16384, "events between two punctuations")
)

// AccessPattern is how the contents of windows are written and read.
type AccessPattern string

// The access patterns, as FlowKV names them.
const (
	AccessNone AccessPattern = "-"
	// Aligned windows are appended to, and read as a whole: the same bounds for all keys.
	Aligned AccessPattern = "aligned"
	// AlignedRMW is one value for each key and window that is changed as items come.
	AlignedRMW AccessPattern = "aligned-rmw"
	// Unaligned windows are appended to, and read one by one: each key has its own.
	Unaligned AccessPattern = "unaligned"
	// UnalignedRMW is one value for each such window that is changed as items come.
	UnalignedRMW AccessPattern = "unaligned-rmw"
)

// View is what an annotating pass sees: the graph, and the properties that it said it sets.
type View struct {
	*Graph
	pass string
	sets []PropID
}

func (v *View) set(p PropID, id ID, to value) error {
	allowed := false
	for _, s := range v.sets {
		allowed = allowed || s.Name() == p.Name()
	}
	if !allowed {
		return fmt.Errorf("pass %s sets %s, which it does not declare", v.pass, p.Name())
	}
	if p.Side() == OnVertex && v.vertex(id) < 0 || p.Side() == OnEdge && v.edge(id) < 0 {
		return fmt.Errorf("pass %s sets %s of %s: there is no such %s", v.pass, p.Name(), id, p.Side())
	}
	key := setting{id, p.Name()}
	if old, ok := v.settings[key]; ok && old.fixed && old.by != to.by {
		if old.is != to.is {
			return fmt.Errorf("pass %s fixed %s of %s at %v, pass %s sets it to %v", old.by, p.Name(), id, old.is, to.by, to.is)
		}
		return nil
	}
	v.settings[key] = to
	return nil
}
