// Package plot draws horizontal bar charts as SVG, self-contained and readable
// without colours: each bar carries its figure.
package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Bar is a line of a chart: one value with an optional spread, or several
// values in one bar or side by side.
type Bar struct {
	Label  string
	Values []float64
	Low    float64 // spread of a single value; ignored when High is 0
	High   float64
}

// Chart is a bar chart.
type Chart struct {
	Title   string
	Unit    string
	Series  []string // names of the values, if more than one
	Stacked bool
	Bars    []Bar
	Mark    float64 // a vertical line at this value, 0 for none
	Format  func(float64) string
}

var colours = []string{"#2f6db3", "#e08a1e", "#3a9b62", "#b5404e", "#7b62b8", "#8a6d4f", "#7f8b99"}

const (
	left, right, top = 150, 110, 48
	width            = 860
	thick, gap       = 15, 9
)

// SVG returns the drawing.
func (c *Chart) SVG() string {
	format := c.Format
	if format == nil {
		format = func(v float64) string { return fmt.Sprintf("%.3g", v) }
	}
	rows := 1
	if !c.Stacked {
		for _, b := range c.Bars {
			rows = max(rows, len(b.Values))
		}
	}
	step := rows*thick + gap
	height := top + len(c.Bars)*step + 30
	scale := float64(width-left-right) / math.Max(c.highest(), 1e-12)
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/><text x="10" y="20" font-size="15" font-weight="bold">%s</text>`+"\n", width, height, html.EscapeString(c.Title+" ("+c.Unit+")"))
	c.legend(&s)
	for i, b := range c.Bars {
		y := top + i*step
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, y+rows*thick/2+4, html.EscapeString(b.Label))
		if c.Stacked {
			c.stack(&s, b, y, scale, format)
		} else {
			c.side(&s, b, y, scale, format)
		}
	}
	if c.Mark > 0 {
		x := float64(left) + c.Mark*scale
		fmt.Fprintf(&s, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#444" stroke-dasharray="4 3"/>`+"\n", x, x, top-6, height-26)
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (c *Chart) highest() float64 {
	h := c.Mark
	for _, b := range c.Bars {
		sum := 0.0
		for _, v := range b.Values {
			sum += v
			if !c.Stacked {
				h = math.Max(h, v)
			}
		}
		if c.Stacked {
			h = math.Max(h, sum)
		}
		h = math.Max(h, b.High)
	}
	return h
}

func (c *Chart) legend(s *strings.Builder) {
	if len(c.Series) < 2 {
		return
	}
	x := left
	for i, name := range c.Series {
		fmt.Fprintf(s, `<rect x="%d" y="28" width="11" height="11" fill="%s"/><text x="%d" y="38">%s</text>`+"\n", x, colours[i%len(colours)], x+15, html.EscapeString(name))
		x += 30 + 7*len(name)
	}
}

func (c *Chart) stack(s *strings.Builder, b Bar, y int, scale float64, format func(float64) string) {
	x, sum := float64(left), 0.0
	for i, v := range b.Values {
		w := v * scale
		fmt.Fprintf(s, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s: %s</title></rect>`+"\n", x, y, w, thick, colours[i%len(colours)], html.EscapeString(c.Series[i]), format(v))
		x += w
		sum += v
	}
	fmt.Fprintf(s, `<text x="%.1f" y="%d">%s</text>`+"\n", x+5, y+thick-3, format(sum))
}

func (c *Chart) side(s *strings.Builder, b Bar, y int, scale float64, format func(float64) string) {
	for i, v := range b.Values {
		w := v * scale
		fmt.Fprintf(s, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", left, y+i*thick, w, thick-2, colours[i%len(colours)])
		end := float64(left) + w
		if b.High > 0 && len(b.Values) == 1 {
			lo, hi, mid := float64(left)+b.Low*scale, float64(left)+b.High*scale, y+thick/2-1
			fmt.Fprintf(s, `<path d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8" stroke="#111" fill="none"/>`+"\n", lo, mid, hi, lo, mid-4, hi, mid-4)
			end = math.Max(end, hi)
		}
		fmt.Fprintf(s, `<text x="%.1f" y="%d">%s</text>`+"\n", end+5, y+i*thick+thick-4, format(v))
	}
}
