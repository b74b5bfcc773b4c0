package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a vertex is.
type Kind uint8

// The kinds of vertices.
const (
	Source Kind = iota
	Map
	Keyed
	Window
	Join
	Transaction
	Sink
	// Utility vertices are put in by passes, and change nothing of what a job computes.
	Utility
)

func (k Kind) String() string {
	return [...]string{"source", "map", "keyed", "window", "join", "transaction", "sink", "utility"}[k]
}

// Pattern is how the partitions of two vertices are connected.
type Pattern uint8

// The patterns of edges.
const (
	// OneToOne takes each partition to the one with the same number.
	OneToOne Pattern = iota
	// Shuffle takes each item to the partition that its key says.
	Shuffle
	// Broadcast takes all items to all partitions.
	Broadcast
)

func (p Pattern) String() string { return [...]string{"one-to-one", "shuffle", "broadcast"}[p] }

// ID names a vertex or an edge within a job.
type ID string

// Vertex is an operator.
type Vertex struct {
	ID   ID
	Kind Kind
	// Op is what it computes: nothing here looks into it, but for the interfaces
	// [Equal] and [Splitter].
	Op    any
	by    string     // the pass that put it in, if one did
	split *splitting // what it took a part of, if it did
}

// splitting is the operator of a vertex before a part of its work was done in front of it, and
// after that.
type splitting struct{ whole, behind any }

// Edge takes what a vertex puts out to one of the inputs of another.
type Edge struct {
	ID       ID
	From, To ID
	Port     int // which input
	Pattern  Pattern
}

// Graph is a job. It is never changed: passes make other ones. Any goroutine may read it.
type Graph struct {
	name     string
	vertices []Vertex // as they were added; a vertex comes after those that it hears from
	edges    []Edge
	settings map[setting]value
}

// Name returns the name of the job.
func (g *Graph) Name() string { return g.name }

// Vertices returns all vertices, each one after those whose output it gets. The slice is
// not to be changed.
func (g *Graph) Vertices() []Vertex { return g.vertices }

// Edges returns all edges. The slice is not to be changed.
func (g *Graph) Edges() []Edge { return g.edges }

// Vertex returns one by its name.
func (g *Graph) Vertex(id ID) (Vertex, bool) {
	if i := g.vertex(id); i >= 0 {
		return g.vertices[i], true
	}
	return Vertex{}, false
}

func (g *Graph) vertex(id ID) int {
	return slices.IndexFunc(g.vertices, func(v Vertex) bool { return v.ID == id })
}

func (g *Graph) edge(id ID) int {
	return slices.IndexFunc(g.edges, func(e Edge) bool { return e.ID == id })
}

// In returns the edges into a vertex, by port.
func (g *Graph) In(id ID) (in []Edge) {
	for _, e := range g.edges {
		if e.To == id {
			in = append(in, e)
		}
	}
	slices.SortFunc(in, func(a, b Edge) int { return a.Port - b.Port })
	return in
}

// Out returns the edges out of a vertex.
func (g *Graph) Out(id ID) (out []Edge) {
	for _, e := range g.edges {
		if e.From == id {
			out = append(out, e)
		}
	}
	return out
}

func (g *Graph) clone() *Graph {
	c := &Graph{name: g.name, vertices: slices.Clone(g.vertices), edges: slices.Clone(g.edges), settings: map[setting]value{}}
	for k, v := range g.settings {
		c.settings[k] = v
	}
	return c
}

// order puts each vertex behind those whose output it gets, or tells of a cycle.
func (g *Graph) order() error {
	waits := map[ID]int{}
	for _, e := range g.edges {
		waits[e.To]++
	}
	left := slices.Clone(g.vertices)
	g.vertices = g.vertices[:0]
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(v Vertex) bool { return waits[v.ID] == 0 })
		if i < 0 {
			var names []string
			for _, v := range left {
				names = append(names, string(v.ID))
			}
			return fmt.Errorf("job %s: a cycle through some of %s", g.name, strings.Join(names, ", "))
		}
		for _, e := range g.Out(left[i].ID) {
			waits[e.To]--
		}
		g.vertices = append(g.vertices, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return nil
}

// Builder makes a graph as a user describes it.
type Builder struct {
	g    Graph
	errs []error
}

// NewBuilder begins a job.
func NewBuilder(name string) *Builder {
	return &Builder{g: Graph{name: name, settings: map[setting]value{}}}
}

// Vertex adds an operator.
func (b *Builder) Vertex(id ID, kind Kind, op any) {
	if id == "" || strings.ContainsAny(string(id), " >#\t\n") {
		b.errs = append(b.errs, fmt.Errorf("job %s: %q cannot be the name of a vertex", b.g.name, id))
	}
	if b.g.vertex(id) >= 0 {
		b.errs = append(b.errs, fmt.Errorf("job %s: two vertices are called %s", b.g.name, id))
	}
	b.g.vertices = append(b.g.vertices, Vertex{ID: id, Kind: kind, Op: op})
}

// Edge takes the output of a vertex to an input of another.
func (b *Builder) Edge(from, to ID, port int, pattern Pattern) {
	b.g.edges = append(b.g.edges, newEdge(from, to, port, pattern))
}

func newEdge(from, to ID, port int, pattern Pattern) Edge {
	id := ID(fmt.Sprintf("%s>%s", from, to))
	if port > 0 {
		id = ID(fmt.Sprintf("%s>%s#%d", from, to, port))
	}
	return Edge{id, from, to, port, pattern}
}

// Build returns the job, or what is wrong with it.
func (b *Builder) Build() (*Graph, error) {
	if len(b.errs) > 0 {
		return nil, b.errs[0]
	}
	g := b.g.clone()
	if err := g.order(); err != nil {
		return nil, err
	}
	return g, Check(g)
}
