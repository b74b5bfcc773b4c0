package plot

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Curve is a line of a line chart: a value for each of the chart's X.
type Curve struct {
	Label  string
	Values []float64
	Dashed bool
}

// Lines is a line chart with both axes logarithmic, for how something grows with
// something that doubles. Each curve carries its name and last value.
type Lines struct {
	Title  string
	X      []float64
	XLabel string
	Curves []Curve
	Format func(float64) string
}

const (
	linesLeft, linesRight, linesTop, linesBottom = 60, 210, 40, 44
	linesHeight                                  = 520
	linesLabel                                   = 14 // between two labels at least
)

// SVG returns the drawing.
func (c *Lines) SVG() string {
	format := c.Format
	if format == nil {
		format = func(v float64) string { return fmt.Sprintf("%.3g", v) }
	}
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, linesHeight, width, linesHeight)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/><text x="10" y="20" font-size="15" font-weight="bold">%s</text>`+"\n", width, linesHeight, html.EscapeString(c.Title))
	x, y := c.scales()
	c.grid(&s, x, y, format)
	type label struct {
		text   string
		colour string
		y      float64
	}
	var labels []label
	for i, v := range c.Curves {
		colour, dash := colours[i%len(colours)], ""
		switch {
		case v.Dashed:
			colour, dash = "#444", ` stroke-dasharray="5 4"`
		case i >= len(colours): // the colours come round again
			dash = ` stroke-dasharray="9 2"`
		}
		var points []string
		for j, value := range v.Values {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(c.X[j]), y(value)))
		}
		fmt.Fprintf(&s, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.6"%s><title>%s</title></polyline>`+"\n", strings.Join(points, " "), colour, dash, html.EscapeString(v.Label))
		if n := len(v.Values); n > 0 {
			labels = append(labels, label{v.Label + " " + format(v.Values[n-1]), colour, y(v.Values[n-1])})
		}
	}
	slices.SortStableFunc(labels, func(a, b label) int { return int(math.Copysign(1, a.y-b.y)) })
	low := float64(linesTop)
	for _, l := range labels { // names that would cover each other move down
		low = math.Max(low, l.y)
		fmt.Fprintf(&s, `<text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", width-linesRight+8, low+4, l.colour, html.EscapeString(l.text))
		low += linesLabel
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// scales returns where values stand.
func (c *Lines) scales() (x, y func(float64) float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range c.Curves {
		for _, value := range v.Values {
			lo, hi = math.Min(lo, value), math.Max(hi, value)
		}
	}
	xlo, xhi := slices.Min(c.X), slices.Max(c.X)
	axis := func(lo, hi, from, to float64) func(float64) float64 {
		lo, hi = math.Log2(math.Max(lo, 1e-3)), math.Log2(math.Max(hi, 1e-3))
		return func(v float64) float64 {
			return from + (to-from)*(math.Log2(math.Max(v, 1e-3))-lo)/math.Max(hi-lo, 1e-9)
		}
	}
	return axis(xlo, xhi, linesLeft, width-linesRight), axis(lo, hi, linesHeight-linesBottom, linesTop)
}

func (c *Lines) grid(s *strings.Builder, x, y func(float64) float64, format func(float64) string) {
	for _, v := range c.X {
		fmt.Fprintf(s, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eee"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x(v), x(v), linesTop, linesHeight-linesBottom, x(v), linesHeight-linesBottom+16, v)
	}
	fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (linesLeft+width-linesRight)/2, linesHeight-8, html.EscapeString(c.XLabel))
	for v := 1.0 / 8; v <= 4096; v *= 2 {
		if at := y(v); at >= linesTop-1 && at <= linesHeight-linesBottom+1 {
			fmt.Fprintf(s, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#eee"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", linesLeft, width-linesRight, at, at, linesLeft-6, at+4, html.EscapeString(format(v)))
		}
	}
}
