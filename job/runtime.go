package job

import "github.com/heddle-stream/heddle/plan"

// RuntimePasses returns the passes that are asked between batches: one that looks for the batch size with
// which most is done. They are for one run.
func RuntimePasses() []plan.Adaptor { return []plan.Adaptor{&batchSize{}} }

// batchSize doubles the batches of sources as long as that pays. Larger ones cost memory and make results
// later, so that one that does not pay goes back.
type batchSize struct {
	best  float64 // events per ns with the last size that was good
	trial bool
	wait  int // rounds before the next trial
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
	case p.trial && speed < p.best*gainMin:
		p.trial, p.wait = false, restRounds
		return scaleBatches(v, 1, 2)
	case p.wait > 0:
		p.wait--
		return nil
	}
	p.best, p.trial = speed, true
	return scaleBatches(v, 2, 1)
}

// scaleBatches changes the batches of sources that nobody fixed.
func scaleBatches(v *plan.View, times, by int) error {
	for _, x := range v.Vertices() {
		n := plan.BatchSize.Of(v.Graph, x.ID) * times / by
		if x.Kind != plan.Source || n > batchMax || n < 1 || plan.BatchSize.Fixed(v.Graph, x.ID) {
			continue
		}
		if err := plan.BatchSize.Set(v, x.ID, n); err != nil {
			return err
		}
	}
	return nil
}
