package bench

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/bench/plot"
	"github.com/heddle-stream/heddle/bench/simulate"
)

var simulationPage = template.Must(template.New("simulation").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Heddle: {{.Trace}} simulated</title>
<style>body{font-family:sans-serif;max-width:900px;margin:2em auto;color:#222}table{border-collapse:collapse;font-size:13px}
td,th{padding:4px 9px;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}
svg{max-width:100%;height:auto}</style></head><body>
<h1>{{.Trace}}: predicted speed-up over serial</h1>
<p>{{.Events}} events in {{.Batches}} batches were simulated, with costs measured on one worker. No more than the bounds is possible for
operations: {{.Path}} is all of them over the longest path of those that wait for each other, and n workers do n at a time.</p>
<table><tr><th>workers</th>{{range .Workers}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr><td>{{.Name}}</td>{{range .Values}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{.Chart}}
{{if .Checks}}<h2>Prediction and engine</h2>
<table><tr><th>strategy</th><th>workers</th><th>predicted</th><th>measured</th><th>error</th><th>cores to be had</th><th>with all cores free</th><th>error</th></tr>
{{range .Checks}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>{{end}}
<p>Made by <code>heddle simulate</code> on {{.When}}.</p></body></html>
`))

type simulationRow struct {
	Name   string
	Values []string
}

// SimulationHTML writes a prediction as one self-contained page.
func SimulationHTML(w io.Writer, p *simulate.Prediction, checks []simulate.Check, when time.Time) error {
	workers := p.Options.Workers
	chart := plot.Lines{Title: "Predicted speed-up over serial", XLabel: "workers", Format: times}
	for _, n := range workers {
		chart.X = append(chart.X, float64(n))
	}
	var rows []simulationRow
	for at := 0; at < len(p.Points); at += len(workers) {
		row := simulationRow{Name: p.Points[at].Strategy}
		curve := plot.Curve{Label: row.Name}
		for _, pt := range p.Points[at : at+len(workers)] {
			row.Values = append(row.Values, fmt.Sprintf("%.2f", pt.Speedup))
			curve.Values = append(curve.Values, pt.Speedup)
		}
		rows = append(rows, row)
		chart.Curves = append(chart.Curves, curve)
	}
	bound := plot.Curve{Label: "bound", Dashed: true}
	for _, n := range workers {
		bound.Values = append(bound.Values, min(float64(n), p.Bounds.Bound()))
	}
	chart.Curves = append(merged(chart.Curves), bound)
	return simulationPage.Execute(w, map[string]any{
		"Trace": p.Options.Trace, "Events": Thousands(float64(p.Events)), "Batches": p.Batches, "Workers": workers, "Rows": rows,
		"Path": fmt.Sprintf("%.1f", p.Bounds.Bound()), "Checks": checkRows(checks), "When": when.Format("2006-01-02 15:04"),
		"Chart": template.HTML(chart.SVG()), //nolint:gosec // our own drawing, which escapes its texts
	})
}

// merged makes one curve of neighbours that are the same.
func merged(curves []plot.Curve) []plot.Curve {
	var out []plot.Curve
	for _, c := range curves {
		if n := len(out); n > 0 && slices.Equal(out[n-1].Values, c.Values) {
			out[n-1].Label += ", " + c.Label[max(0, len(c.Label)-len("lazy")):]
			continue
		}
		out = append(out, c)
	}
	return out
}

func checkRows(checks []simulate.Check) [][]string {
	var out [][]string
	for _, c := range checks {
		row := []string{c.Strategy, fmt.Sprint(c.Workers), times(c.Predicted), times(c.Measured), percent(c.Error), fmt.Sprintf("%.2f", c.Cores), "-", "-"}
		if c.Calm > 0 {
			row[6], row[7] = times(c.Calm), percent(c.CalmError)
		}
		out = append(out, row)
	}
	return out
}

func percent(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }
