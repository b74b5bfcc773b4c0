package simulate

import (
	"fmt"
	"strings"
)

// Table prints the prediction for people: strategies in lines, workers in columns.
func (p *Prediction) Table() string {
	c := p.Costs
	var b strings.Builder
	perEvent := p.Serial / float64(max(p.Events, 1))
	fmt.Fprintf(&b, "%s: %d events in %d batches measured on one worker, %d batches with %d events simulated\n", p.Options.Trace, c.Events, c.Batches, p.Batches, p.Events)
	fmt.Fprintf(&b, "serial %.0f ns per event; operations:", perEvent)
	for k, name := range c.Names {
		if name != "" {
			fmt.Fprintf(&b, " %s %.0f ns", name, c.Kinds[k])
		}
	}
	fmt.Fprintf(&b, "\na graph batch, ns per event: plan %.0f, seal %.0f, link %.0f, results %.0f, install %.0f, deliver %.0f; a change is seen after %.0f ns\n\nspeed-up over serial\n", c.Plan, c.Seal, c.Link, c.Emit, c.Install, c.Deliver, c.Wake)
	fmt.Fprintf(&b, "%-16s", "workers")
	for _, w := range p.Options.Workers {
		fmt.Fprintf(&b, " %7d", w)
	}
	n := len(p.Options.Workers)
	for i, pt := range p.Points {
		if i%n == 0 {
			fmt.Fprintf(&b, "\n%-16s", pt.Strategy)
		}
		fmt.Fprintf(&b, " %7.2f", pt.Speedup)
	}
	fmt.Fprintf(&b, "\n%-16s", "bound: path")
	for range n {
		fmt.Fprintf(&b, " %7.2f", p.Bounds.Bound())
	}
	fmt.Fprintf(&b, "\n%-16s", "bound: work")
	for _, w := range p.Options.Workers {
		fmt.Fprintf(&b, " %7d", w)
	}
	b.WriteString("\n")
	return b.String()
}
