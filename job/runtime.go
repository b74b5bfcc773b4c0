package job

import "github.com/heddle-stream/heddle/plan"

// RuntimePasses returns the passes that are asked between batches: one that looks for the batch size with
// which most is done. They are for one run.
func RuntimePasses() []plan.Adaptor { return []plan.Adaptor{&batchSize{}} }

// batchSize doubles the batches of sources as long as that pays. Larger ones cost memory and make results
// later, so that one that does not pay goes back.
type batchSize struct {
	best   float64         // events per ns with the last sizes that were good
	before map[plan.ID]int // those sizes, while larger ones are tried
	wait   int             // rounds before the next trial
}

const (
	roundBatches = 6 // that are measured together
	batchMax     = 1 << 17
	gainMin      = 1.05
	restRounds   = 30
)

func (*batchSize) Name() string         { return "batch at run time" }
func (*batchSize) Needs() []plan.PropID { return nil }
func (*batchSize) Sets() []plan.PropID  { return []plan.PropID{plan.BatchSize} }

// Adapt implements [plan.Adaptor].
func (p *batchSize) Adapt(v *plan.View, m plan.Measured) error {
	if m.Nanos == 0 {
		return nil
	}
	speed := float64(m.Events) / float64(m.Nanos)
	switch {
	case p.before != nil && speed < p.best*gainMin:
		sizes := p.before
		p.before, p.wait = nil, restRounds
		return setBatches(v, sizes)
	case p.wait > 0:
		p.wait--
		return nil
	}
	p.best, p.before = speed, map[plan.ID]int{}
	larger := map[plan.ID]int{}
	for _, x := range v.Vertices() {
		n := plan.BatchSize.Of(v.Graph, x.ID)
		if x.Kind == plan.Source && 2*n <= batchMax && !plan.BatchSize.Fixed(v.Graph, x.ID) {
			p.before[x.ID], larger[x.ID] = n, 2*n
		}
	}
	return setBatches(v, larger)
}

func setBatches(v *plan.View, sizes map[plan.ID]int) error {
	for id, n := range sizes {
		if err := plan.BatchSize.Set(v, id, n); err != nil {
			return err
		}
	}
	return nil
}
