package bench

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/bench/plot"
)

// charts are the pictures of a comparison, by file name.
func (c *Comparison) charts() []namedChart {
	throughput := plot.Chart{Title: "Throughput by strategy", Unit: "events/s, median with min and max", Format: Thousands}
	latency := plot.Chart{Title: "Latency from hand-over to release", Unit: "ms", Series: []string{"p50", "p95", "p99"}}
	speedup := plot.Chart{Title: "Speed-up over our serial strategy", Unit: "x, in the same repetition", Mark: 1, Format: times}
	parts := plot.Chart{
		Title: "Where the time goes", Unit: "ns per event, summed over workers", Stacked: true,
		Series: []string{"plan", "build", "explore", "useful", "abort", "wait", "install"},
	}
	for _, r := range c.Rows {
		throughput.Bars = append(throughput.Bars, bar(r.Strategy, r.PerSec))
		latency.Bars = append(latency.Bars, plot.Bar{Label: r.Strategy, Values: []float64{r.LatencyUs.P50 / 1e3, r.LatencyUs.P95 / 1e3, r.LatencyUs.P99 / 1e3}})
		speedup.Bars = append(speedup.Bars, plot.Bar{Label: r.Strategy, Values: []float64{r.SerialRatio}})
		if values := r.perEvent(); values != nil {
			parts.Bars = append(parts.Bars, plot.Bar{Label: r.Strategy, Values: values})
		}
	}
	for _, l := range c.Loops {
		throughput.Bars = append(throughput.Bars, bar("loop: "+l.Name, l.PerSec))
	}
	if c.Bound != nil {
		throughput.Bars = append(throughput.Bars, bar("bound", c.Bound))
	}
	return []namedChart{{"throughput", throughput}, {"speedup", speedup}, {"latency", latency}, {"breakdown", parts}}
}

type namedChart struct {
	Name  string
	Chart plot.Chart
}

func bar(label string, v []float64) plot.Bar {
	return plot.Bar{Label: label, Values: []float64{Median(v)}, Low: slices.Min(v), High: slices.Max(v)}
}

func times(v float64) string { return fmt.Sprintf("%.2fx", v) }

// perEvent returns the parts of the breakdown in ns per event over all workers,
// nil for a run without any: a serial one is all useful.
func (r *Result) perEvent() []float64 {
	b, w, n := r.BreakdownNs, int64(r.Workers), float64(max(1, r.Events))
	parts := []int64{b.Plan * w, b.Build * w, b.Explore, b.Useful, b.Abort, b.Wait, b.Install * w}
	out, sum := make([]float64, len(parts)), 0.0
	for i, p := range parts {
		out[i] = float64(p) / n
		sum += out[i]
	}
	if sum == 0 {
		out[3] = r.Seconds * 1e9 / n
	}
	return out
}

var page = template.Must(template.New("report").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Heddle: {{.Workload}}</title>
<style>body{font-family:sans-serif;max-width:900px;margin:2em auto;color:#222}table{border-collapse:collapse;font-size:13px}
td,th{padding:4px 9px;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto}code{background:#f2f2f2;padding:1px 4px}</style></head><body>
<h1>{{.Workload}}: strategies compared</h1>
<p>{{.Events}} events, {{.Workers}} workers, batches of up to {{.Batch}} events, {{.Reps}} interleaved repetitions.
Parameters: <code>{{.Params}}</code>. {{.Aborted}} transactions aborted.
{{if .Verified}}Each strategy was verified against the serial model: outcomes, values read, results and final state.{{end}}
State hash <code>{{.State}}</code>, results hash <code>{{.Results}}</code>, the same for all.</p>
<p>The machine may be shared: only ratios within this page mean anything.</p>
<table><tr><th>strategy</th><th>events/s</th><th>min</th><th>max</th><th>x loop</th><th>x serial</th><th>p99 ms</th></tr>
{{range .Rows}}<tr><td>{{.Strategy}}</td><td>{{.Median}}</td><td>{{.Min}}</td><td>{{.Max}}</td><td>{{.Loop}}</td><td>{{.Serial}}</td><td>{{.P99}}</td></tr>
{{end}}</table>
{{range .Charts}}{{.}}
{{end}}<p>Made by <code>heddle compare</code> on {{.When}}.</p></body></html>
`))

type pageRow struct{ Strategy, Median, Min, Max, Loop, Serial, P99 string }

// HTML writes one self-contained page: no scripts, no network.
func (c *Comparison) HTML(w io.Writer, when time.Time) error {
	first := c.Rows[0]
	config, err := c.Spec.Config()
	if err != nil {
		return err
	}
	data := map[string]any{
		"Workload": first.Workload, "Events": Thousands(float64(first.Events)), "Workers": first.Workers, "Batch": first.Batch,
		"Reps": c.Reps, "Params": config.Values(), "Aborted": first.Aborted, "Verified": c.Verify,
		"State": first.StateHash, "Results": first.ResultsHash, "When": when.Format("2006-01-02 15:04"),
	}
	var rows []pageRow
	for _, r := range c.Rows {
		rows = append(rows, pageRow{
			r.Strategy, Thousands(Median(r.PerSec)), Thousands(slices.Min(r.PerSec)), Thousands(slices.Max(r.PerSec)),
			fmt.Sprintf("%.2f", r.SerialLoopRatio), fmt.Sprintf("%.2f", r.SerialRatio), fmt.Sprintf("%.1f", r.LatencyUs.P99/1e3),
		})
	}
	data["Rows"] = rows
	var charts []template.HTML
	for _, named := range c.charts() {
		charts = append(charts, template.HTML(named.Chart.SVG())) //nolint:gosec // our own drawing, which escapes its texts
	}
	data["Charts"] = charts
	return page.Execute(w, data)
}
