package plan

import (
	"fmt"
	"slices"
)

// Equal is an operator that can tell when another one computes the same from the same
// inputs.
type Equal interface{ EqualTo(other any) bool }

// Splitter is an operator that can do a part of its work before the edge on which its
// input comes: a first operator for each partition in front of the edge, and another one behind it
// which makes of those parts what the operator would have made of all.
type Splitter interface {
	// Split returns both operators, or false when it cannot.
	Split() (before, behind any, ok bool)
}

// Shaper is what a reshaping pass sees: the graph, and the changes that keep a job's results.
type Shaper struct {
	*Graph
	pass string
}

// Vertices returns all vertices as they are now: a pass may go through them while it changes the
// graph.
func (s *Shaper) Vertices() []Vertex { return slices.Clone(s.vertices) }

// Edges returns all edges as they are now.
func (s *Shaper) Edges() []Edge { return slices.Clone(s.edges) }

// Insert puts a utility vertex on an edge, which then leads to it one to one. It goes on from
// there as it was. The operator has to hand on whatever it gets.
func (s *Shaper) Insert(edge, id ID, op any) error {
	i := s.edge(edge)
	if i < 0 {
		return fmt.Errorf("pass %s: there is no edge %s", s.pass, edge)
	}
	if s.vertex(id) >= 0 {
		return fmt.Errorf("pass %s: there is a vertex %s already", s.pass, id)
	}
	e := s.edges[i]
	s.vertices = append(s.vertices, Vertex{ID: id, Kind: Utility, Op: op, by: s.pass})
	s.edges[i] = newEdge(e.From, id, 0, OneToOne)
	s.edges = append(s.edges, newEdge(id, e.To, e.Port, e.Pattern))
	s.forget(e.ID)
	if v, ok := s.settings[setting{e.From, Parallelism.name}]; ok { // one to one
		s.settings[setting{id, Parallelism.name}] = v
	}
	return s.order()
}

// Split lets the vertex behind an edge do a part of its work in front of it. It reports false
// when its operator cannot.
func (s *Shaper) Split(edge, id ID) (bool, error) {
	i := s.edge(edge)
	if i < 0 {
		return false, fmt.Errorf("pass %s: there is no edge %s", s.pass, edge)
	}
	to := s.vertex(s.edges[i].To)
	op, ok := s.vertices[to].Op.(Splitter)
	if !ok || len(s.In(s.vertices[to].ID)) != 1 {
		return false, nil
	}
	before, behind, ok := op.Split()
	if !ok {
		return false, nil
	}
	if err := s.Insert(edge, id, before); err != nil {
		return false, err
	}
	rest := &s.vertices[s.vertex(s.Out(id)[0].To)]
	s.vertices[s.vertex(id)].split = &splitting{whole: rest.Op, behind: behind}
	rest.Op = behind
	return true, nil
}

// Delete takes a utility vertex away again. A vertex that was split has to be as the split
// left it: what was put in later goes first.
func (s *Shaper) Delete(id ID) error {
	i := s.vertex(id)
	if i < 0 || s.vertices[i].Kind != Utility {
		return fmt.Errorf("pass %s: there is no utility vertex %s", s.pass, id)
	}
	in, out := s.In(id)[0], s.Out(id)[0]
	if split := s.vertices[i].split; split != nil {
		rest := &s.vertices[s.vertex(out.To)]
		if rest.Op != split.behind {
			return fmt.Errorf("pass %s: what is behind %s was changed after it was put in", s.pass, id)
		}
		rest.Op = split.whole
	}
	s.vertices = slices.Delete(s.vertices, i, i+1)
	s.edges[s.edge(in.ID)] = newEdge(in.From, out.To, out.Port, out.Pattern)
	s.edges = slices.Delete(s.edges, s.edge(out.ID), s.edge(out.ID)+1)
	s.forget(id)
	s.forget(in.ID)
	s.forget(out.ID)
	return nil
}

// Merge makes one vertex of two that compute the same from the same inputs: whoever gets
// the output of the second one then gets that of the first. It reports false when they differ.
func (s *Shaper) Merge(keep, drop ID) (bool, error) {
	a, okA := s.Vertex(keep)
	b, okB := s.Vertex(drop)
	if !okA || !okB || keep == drop {
		return false, fmt.Errorf("pass %s: no two vertices %s and %s", s.pass, keep, drop)
	}
	same, ok := a.Op.(Equal)
	if !ok || a.Kind != b.Kind || a.Kind == Sink || !same.EqualTo(b.Op) || !sameInputs(s.In(keep), s.In(drop)) {
		return false, nil
	}
	for i, e := range s.edges {
		if e.From == drop {
			s.edges[i] = newEdge(keep, e.To, e.Port, e.Pattern)
			s.forget(e.ID)
		}
	}
	for _, e := range s.In(drop) {
		s.edges = slices.Delete(s.edges, s.edge(e.ID), s.edge(e.ID)+1)
		s.forget(e.ID)
	}
	i := s.vertex(drop)
	s.vertices = slices.Delete(s.vertices, i, i+1)
	s.forget(drop)
	return true, s.order()
}

func sameInputs(a, b []Edge) bool {
	return slices.EqualFunc(a, b, func(x, y Edge) bool {
		return x.From == y.From && x.Port == y.Port && x.Pattern == y.Pattern
	})
}

// forget removes what was set of a vertex or an edge that is gone.
func (s *Shaper) forget(id ID) {
	for key := range s.settings {
		if key.of == id {
			delete(s.settings, key)
		}
	}
}
