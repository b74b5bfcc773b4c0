package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
)

// named is an operator that computes the same as others of its name, and one of a divisible
// name can be split.
type named string

func (n named) EqualTo(other any) bool { return n == other }

func (n named) Split() (before, behind any, ok bool) {
	return n + "-before", n + "-behind", strings.HasPrefix(string(n), "sum")
}

// diamond is a job in which two vertices compute the same.
func diamond(t *testing.T) *Graph {
	t.Helper()
	b := NewBuilder("diamond")
	b.Vertex("out", Sink, named("out"))
	b.Vertex("in", Source, named("in"))
	for _, id := range []ID{"left", "right"} {
		b.Vertex(id, Map, named("double"))
		b.Vertex("sum-"+id, Window, named("sum"))
		b.Edge("in", id, 0, OneToOne)
		b.Edge(id, "sum-"+id, 0, Shuffle)
	}
	b.Vertex("both", Join, named("both"))
	b.Edge("sum-left", "both", 0, Shuffle)
	b.Edge("sum-right", "both", 1, Shuffle)
	b.Edge("both", "out", 0, OneToOne)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// setter is a pass for tests.
type setter struct {
	name        string
	needs, sets []PropID
	do          func(v *View) error
}

func (p setter) Name() string           { return p.name }
func (p setter) Needs() []PropID        { return p.needs }
func (p setter) Sets() []PropID         { return p.sets }
func (p setter) Annotate(v *View) error { return p.do(v) }

type shaping struct{ do func(s *Shaper) error }

func (p shaping) Name() string            { return "shaping" }
func (p shaping) Needs() []PropID         { return nil }
func (p shaping) Reshape(s *Shaper) error { return p.do(s) }

func applied(t *testing.T, g *Graph, passes ...Pass) (*Graph, error) {
	t.Helper()
	p, err := NewPolicy(passes...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Apply(g, nil)
}

func parallel(name string, id ID, n int, fix bool) setter {
	return setter{name, nil, []PropID{Parallelism}, func(v *View) error {
		for _, x := range v.Vertices() {
			if x.ID == id && fix {
				return Parallelism.Fix(v, id, n)
			}
		}
		return Parallelism.Set(v, id, n)
	}}
}

func TestPropertyFixedTwice(t *testing.T) {
	g := diamond(t)
	_, err := applied(t, g, parallel("one", "both", 1, true), parallel("two", "both", 2, false))
	if err == nil || !strings.Contains(err.Error(), "pass one fixed parallelism of both at 1, pass two sets it to 2") {
		t.Errorf("fixed, then set otherwise: %v", err)
	}
	if g, err = applied(t, g, parallel("one", "both", 1, true), parallel("two", "both", 1, true)); err != nil {
		t.Errorf("the same twice: %v", err)
	}
	var b strings.Builder
	if err := g.Explain(&b, "both"); err != nil || !strings.Contains(b.String(), "parallelism = 1, fixed by pass one") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

func TestPassesDoWhatTheySay(t *testing.T) {
	g := diamond(t)
	undeclared := setter{"sly", nil, nil, func(v *View) error { return Parallelism.Set(v, "both", 2) }}
	if _, err := applied(t, g, undeclared); err == nil || !strings.Contains(err.Error(), "pass sly sets parallelism, which it does not declare") {
		t.Errorf("undeclared: %v", err)
	}
	if _, err := applied(t, g, parallel("lost", "nowhere", 2, false)); err == nil || !strings.Contains(err.Error(), "no such vertex") {
		t.Errorf("of nothing: %v", err)
	}
	needs := setter{"greedy", []PropID{Access}, nil, func(*View) error { return nil }}
	if _, err := NewPolicy(parallel("one", "both", 1, false), needs); err == nil || err.Error() != "pass greedy needs access, which no pass before it sets" {
		t.Errorf("needs: %v", err)
	}
	if _, err := applied(t, g, parallel("odd", "in", 4, false)); err == nil || !strings.Contains(err.Error(), "one to one, from 4 partitions to 1") {
		t.Errorf("not to be executed: %v", err)
	}
	fused := setter{"fuser", nil, []PropID{Fuse}, func(v *View) error { return Fuse.Set(v, "sum-left>both", true) }}
	if _, err := applied(t, g, fused); err == nil || !strings.Contains(err.Error(), "is fused, and a shuffle") {
		t.Errorf("fused shuffle: %v", err)
	}
}

func TestJobsThatAreNone(t *testing.T) {
	for want, build := range map[string]func(b *Builder){
		"two vertices are called a": func(b *Builder) { b.Vertex("a", Source, nil); b.Vertex("a", Sink, nil) },
		"a cycle through some of a, b": func(b *Builder) {
			b.Vertex("a", Map, nil)
			b.Vertex("b", Map, nil)
			b.Edge("a", "b", 0, OneToOne)
			b.Edge("b", "a", 0, OneToOne)
		},
		"nobody gets the output of a": func(b *Builder) { b.Vertex("a", Source, nil) },
		"sink b has no input":         func(b *Builder) { b.Vertex("b", Sink, nil) },
		"leads from or to nowhere":    func(b *Builder) { b.Vertex("a", Source, nil); b.Edge("a", "x", 0, OneToOne) },
		`"a b" cannot be the name`:    func(b *Builder) { b.Vertex("a b", Source, nil) },
		"no input 0, or two": func(b *Builder) {
			b.Vertex("a", Source, nil)
			b.Vertex("b", Sink, nil)
			b.Edge("a", "b", 1, OneToOne)
		},
	} {
		b := NewBuilder("j")
		build(b)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// Equal vertices become one when what they hear from has become one.
func TestMergeFromTheSourceOn(t *testing.T) {
	g, err := applied(t, diamond(t), shaping{func(s *Shaper) error {
		if ok, err := s.Merge("sum-left", "sum-right"); ok || err != nil {
			return fmt.Errorf("merged with other inputs: %v, %w", ok, err)
		}
		for _, pair := range [][2]ID{{"left", "right"}, {"sum-left", "sum-right"}} {
			if ok, err := s.Merge(pair[0], pair[1]); !ok || err != nil {
				return fmt.Errorf("not merged: %v, %w", ok, err)
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if in := g.In("both"); len(g.Vertices()) != 5 || in[0].From != "sum-left" || in[1].From != "sum-left" {
		t.Errorf("%v", in)
	}
}

// Random sequences of passes leave a graph that can be executed, and taking away what was put in
// leaves the one that there was.
func TestRandomPasses(t *testing.T) {
	for seed := range uint64(20) {
		r := rng.New(seed, 1)
		g := diamond(t)
		var put []ID
		for step := range 1000 {
			next, err := applied(t, g, randomPass(r, step, &put))
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			g = next
		}
		for _, id := range slices.Backward(put) {
			var err error
			if g, err = applied(t, g, shaping{func(s *Shaper) error { return s.Delete(id) }}); err != nil {
				t.Fatal(err)
			}
		}
		if want := diamond(t); !sameShape(g, want) {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, text(t, g), text(t, want))
		}
	}
}

func TestSplitsAreUndoneInOrder(t *testing.T) {
	_, err := applied(t, diamond(t), shaping{func(s *Shaper) error {
		for _, id := range []ID{"one", "two"} {
			if ok, err := s.Split(s.In("sum-left")[0].ID, id); !ok || err != nil {
				return fmt.Errorf("not split: %v, %w", ok, err)
			}
		}
		return s.Delete("one")
	}})
	if err == nil || !strings.Contains(err.Error(), "what is behind one was changed after it was put in") {
		t.Errorf("%v", err)
	}
}

// sameShape compares vertices with their operators, and edges.
func sameShape(a, b *Graph) bool {
	if len(a.vertices) != len(b.vertices) || len(a.edges) != len(b.edges) {
		return false
	}
	for _, v := range a.vertices {
		if o, ok := b.Vertex(v.ID); !ok || o.Op != v.Op || o.Kind != v.Kind {
			return false
		}
	}
	for _, e := range a.edges {
		if i := b.edge(e.ID); i < 0 || b.edges[i] != e {
			return false
		}
	}
	return true
}

func text(t *testing.T, g *Graph) string {
	t.Helper()
	var b strings.Builder
	if err := g.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// parallel1 sets the parallelism of all vertices.
func parallel1(n int) setter {
	return setter{"parallel", nil, []PropID{Parallelism}, func(v *View) error {
		for _, x := range v.Vertices() {
			if err := Parallelism.Set(v, x.ID, n); err != nil {
				return err
			}
		}
		return nil
	}}
}

func randomPass(r *rng.RNG, step int, put *[]ID) Pass {
	switch r.IntN(4) {
	case 0:
		return parallel1(1 << r.IntN(5))
	case 1:
		return setter{"fuse", nil, []PropID{Fuse}, func(v *View) error {
			for _, e := range v.Edges() {
				if e.Pattern == OneToOne && len(v.In(e.To)) == 1 && r.IntN(2) == 0 {
					if err := Fuse.Set(v, e.ID, true); err != nil {
						return err
					}
				}
			}
			return nil
		}}
	case 2:
		return shaping{func(s *Shaper) error {
			if n := len(*put); n > 0 && (n > 12 || r.IntN(2) == 0) {
				id := (*put)[n-1] // a split is undone before what it split
				*put = (*put)[:n-1]
				return s.Delete(id)
			}
			e := s.Edges()[r.IntN(len(s.Edges()))]
			id := ID(fmt.Sprint("relay-", step))
			*put = append(*put, id)
			return s.Insert(e.ID, id, named("relay"))
		}}
	}
	return shaping{func(s *Shaper) error {
		if len(*put) > 12 {
			return nil
		}
		e := s.Edges()[r.IntN(len(s.Edges()))]
		id := ID(fmt.Sprint("part-", step))
		ok, err := s.Split(e.ID, id)
		if ok {
			*put = append(*put, id)
		}
		return err
	}}
}

func TestPicture(t *testing.T) {
	var b strings.Builder
	if err := diamond(t).SVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "sum-left", "both&gt;out, one-to-one", "</svg>"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if err := diamond(t).Explain(&b, "nowhere"); err == nil || !strings.Contains(err.Error(), "there are in, left") {
		t.Errorf("%v", err)
	}
}
