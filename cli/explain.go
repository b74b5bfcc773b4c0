package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/heddle-stream/heddle/engine"
)

// explain prints a choice of strategy auto: what was measured before it, what was
// predicted, what was chosen, what it took.
func explain(w io.Writer, d engine.Decision) {
	c, l := d.Choice, d.Load
	why := "fastest as predicted"
	switch {
	case l.Ops == 0:
		why = "to see what operations cost"
	case c.Trial:
		why = "a trial"
	}
	fmt.Fprintf(w, "batch %d: %s, %s\n", d.Batch, c.Strategy, why)
	if l.Ops > 0 {
		fmt.Fprintf(w, "  measured   %.1f operations and %.1f accesses per event, %.0f ns of work per operation, %.1f %% aborted", l.Ops, l.Accesses, c.WorkNs, 100*l.Aborted)
		if l.Shape.Events > 0 {
			fmt.Fprintf(w, "; of %d events %d depend on each other in a row (%d operations), one key has %d accesses", l.Shape.Events, l.Shape.Path, l.Shape.Strata, l.Shape.ChainLenMax)
		}
		if g := d.Graph; g.Operations > 0 {
			ops := float64(g.Operations)
			fmt.Fprintf(w, "\n  graph      per operation %.2f temporal and %.2f parametric edges; %d transactions of several operations; chains: skew %.2f, %d that wait for each other; fan-out up to %d; %d components, the largest of %d events",
				float64(g.Temporal)/ops, float64(g.Parametric)/ops, g.Logical, g.ChainSkew, g.Cyclic, g.FanOutMax, g.Components, g.Largest)
		}
		fmt.Fprintf(w, "\n  predicted  %s %.0f ns/event, %s %.0f ns/event\n", c.Strategy, c.Predicted, c.Runner, c.Other)
	}
	fmt.Fprintf(w, "  took       %.0f ns/event over %s", d.TookNs, count(d.Batches, "batch", "batches"))
	if d.Stalls > 0 || d.Redone > 0 {
		fmt.Fprintf(w, "; %d waits, %d steals, %d redone", d.Stalls, d.Steals, d.Redone)
	}
	fmt.Fprintln(w)
	if len(d.Costs) > 0 {
		var costs []string
		for _, k := range d.Costs {
			costs = append(costs, fmt.Sprintf("%s %.0f ns", k.Name, k.Nanos))
		}
		fmt.Fprintf(w, "  operations %s\n", strings.Join(costs, ", "))
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
