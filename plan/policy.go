package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Pass is an [Annotator] or a [Reshaper].
type Pass interface {
	Name() string
	// Needs returns the properties that have to be set before.
	Needs() []PropID
}

// Annotator is a pass that sets properties.
type Annotator interface {
	Pass
	Sets() []PropID
	Annotate(v *View) error
}

// Reshaper is a pass that changes the graph.
type Reshaper interface {
	Pass
	Reshape(s *Shaper) error
}

// Policy is a list of passes that is known to fit together.
type Policy struct{ passes []Pass }

// NewPolicy returns a policy, or which pass needs what none before it sets.
func NewPolicy(passes ...Pass) (*Policy, error) {
	var set []string
	for _, p := range passes {
		for _, need := range p.Needs() {
			if !slices.Contains(set, need.Name()) {
				return nil, fmt.Errorf("pass %s needs %s, which no pass before it sets", p.Name(), need.Name())
			}
		}
		switch p := p.(type) {
		case Annotator:
			for _, s := range p.Sets() {
				set = append(set, s.Name())
			}
		case Reshaper:
		default:
			return nil, fmt.Errorf("pass %s neither annotates nor reshapes", p.Name())
		}
	}
	return &Policy{passes}, nil
}

// Apply runs the passes one after the other and returns the graph after the last one. Seen, if
// not nil, gets the graph after each. The given graph stays as it is.
func (p *Policy) Apply(g *Graph, seen func(p Pass, after *Graph)) (*Graph, error) {
	for _, pass := range p.passes {
		next, err := apply(g, pass)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", g.name, err)
		}
		if err := Check(next); err != nil {
			return nil, fmt.Errorf("after pass %s: %w", pass.Name(), err)
		}
		if g = next; seen != nil {
			seen(pass, g)
		}
	}
	return g, nil
}

func apply(g *Graph, p Pass) (*Graph, error) {
	next := g.clone()
	if a, ok := p.(Annotator); ok {
		return next, a.Annotate(&View{next, p.Name(), a.Sets()})
	}
	return next, p.(Reshaper).Reshape(&Shaper{next, p.Name()})
}

// Check tells why a graph cannot be executed, if it cannot.
func Check(g *Graph) error {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	seen := map[ID]bool{}
	for _, v := range g.vertices {
		in, out := g.In(v.ID), g.Out(v.ID)
		for i, e := range in {
			if e.Port != i {
				complain("%s has no input %d, or two", v.ID, i)
			}
			if !seen[e.From] {
				complain("%s comes before %s, whose output it gets", v.ID, e.From)
			}
		}
		seen[v.ID] = true
		switch {
		case v.Kind == Source && len(in) > 0:
			complain("source %s has an input", v.ID)
		case v.Kind != Source && len(in) == 0:
			complain("%s %s has no input", v.Kind, v.ID)
		case v.Kind == Sink && len(out) > 0:
			complain("sink %s has an output", v.ID)
		case v.Kind != Sink && len(out) == 0:
			complain("nobody gets the output of %s: end it with a sink", v.ID)
		case v.Kind == Utility && (len(in) != 1 || len(out) != 1):
			complain("utility vertex %s has %d inputs and %d outputs", v.ID, len(in), len(out))
		}
		if n := Parallelism.Of(g, v.ID); n < 1 || n > ParallelismMax || n&(n-1) != 0 {
			complain("%s has parallelism %d: powers of two up to %d are allowed", v.ID, n, ParallelismMax)
		}
		if n := BatchSize.Of(g, v.ID); n < 1 {
			complain("%s has batches of %d", v.ID, n)
		}
	}
	checkEdges(g, complain)
	if len(wrong) > 0 {
		return fmt.Errorf("job %s: %s", g.name, strings.Join(wrong, "; "))
	}
	return nil
}

// ParallelismMax is how many partitions a vertex has at most.
const ParallelismMax = 1024

func checkEdges(g *Graph, complain func(format string, args ...any)) {
	ids := map[ID]bool{}
	for _, e := range g.edges {
		if ids[e.ID] {
			complain("two edges are called %s", e.ID)
		}
		ids[e.ID] = true
		if g.vertex(e.From) < 0 || g.vertex(e.To) < 0 {
			complain("edge %s leads from or to nowhere", e.ID)
			continue
		}
		if from, to := Parallelism.Of(g, e.From), Parallelism.Of(g, e.To); e.Pattern == OneToOne && from != to {
			complain("edge %s is one to one, from %d partitions to %d", e.ID, from, to)
		}
		if Fuse.Of(g, e.ID) && e.Pattern != OneToOne {
			complain("edge %s is fused, and a %s", e.ID, e.Pattern)
		}
		if Fuse.Of(g, e.ID) && len(g.In(e.To)) > 1 {
			complain("edge %s is fused, and not the only one into %s", e.ID, e.To)
		}
	}
	for key := range g.settings {
		if g.vertex(key.of) < 0 && !ids[key.of] {
			complain("%s of %s is set, which does not exist", key.prop, key.of)
		}
	}
}
