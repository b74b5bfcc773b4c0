package plan

import (
	"fmt"
	"maps"
)

// Adaptor is a pass at run time: between two batches it may set properties anew, by what was
// measured. The job goes on with them from the next batch on.
type Adaptor interface {
	Pass
	Sets() []PropID
	Adapt(v *View, m Measured) error
}

// Measured is what a job did since its passes were asked last.
type Measured struct {
	Batches int64
	Events  int64
	Nanos   int64 // of processing
}

// Adapt returns the plan as a pass wants it now, which is the given one if it changes nothing. What a
// running job cannot take is an error: partitions, fusion, slices and stores stay as they are.
func Adapt(g *Graph, p Adaptor, m Measured) (*Graph, error) {
	next := g.clone()
	if err := p.Adapt(&View{next, p.Name(), p.Sets()}, m); err != nil {
		return nil, fmt.Errorf("job %s: pass %s: %w", g.name, p.Name(), err)
	}
	if maps.Equal(next.settings, g.settings) {
		return g, nil
	}
	if err := Check(next); err != nil {
		return nil, fmt.Errorf("after pass %s: %w", p.Name(), err)
	}
	if !maps.Equal(next.Manifest(), g.Manifest()) {
		return nil, fmt.Errorf("job %s: pass %s changes what a running job cannot change", g.name, p.Name())
	}
	return next, nil
}
