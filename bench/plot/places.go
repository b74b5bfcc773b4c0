package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Series is a line over named places: a value for each place on the x axis, NaN
// where there is none.
type Series struct {
	Label  string
	Values []float64
	Dashed bool // what others are held against
}

// Places is a line chart over named places, such as settings that have no scale.
type Places struct {
	Title  string
	Unit   string
	XName  string
	X      []string
	Series []Series
}

const (
	placesHeight          = 420
	placesLeft, placesTop = 80, 50
	placesRight           = 190
	placesBottom          = 60
)

// SVG returns the drawing. Each line carries its name at its end, so that it can
// be told without colours.
func (c *Places) SVG() string {
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, placesHeight, width, placesHeight)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/><text x="10" y="22" font-size="15" font-weight="bold">%s</text>`+"\n", width, placesHeight, html.EscapeString(c.Title+" ("+c.Unit+")"))
	top := c.highest()
	c.axes(&s, top)
	labels := c.spreadLabels(top)
	for i, l := range c.Series {
		c.line(&s, i, l, top, labels[i])
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (c *Places) highest() float64 {
	h := 0.0
	for _, l := range c.Series {
		for _, v := range l.Values {
			if !math.IsNaN(v) {
				h = math.Max(h, v)
			}
		}
	}
	return roundUp(math.Max(h, 1e-12))
}

// roundUp returns the next of 1, 2 and 5 times a power of ten.
func roundUp(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*p {
			return f * p
		}
	}
	return 10 * p
}

func (c *Places) x(i int) float64 {
	w := float64(width - placesLeft - placesRight)
	if len(c.X) < 2 {
		return placesLeft + w/2
	}
	return placesLeft + w*float64(i)/float64(len(c.X)-1)
}

func (c *Places) y(v, top float64) float64 {
	return placesHeight - placesBottom - v/top*(placesHeight-placesTop-placesBottom)
}

func (c *Places) axes(s *strings.Builder, top float64) {
	for i := range 6 {
		v := top * float64(i) / 5
		y := c.y(v, top)
		fmt.Fprintf(s, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", placesLeft, width-placesRight, y, y, placesLeft-6, y+4, short(v))
	}
	for i, name := range c.X {
		fmt.Fprintf(s, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", c.x(i), placesHeight-placesBottom+18, html.EscapeString(name))
	}
	fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="middle" font-style="italic">%s</text>`+"\n", (placesLeft+width-placesRight)/2, placesHeight-14, html.EscapeString(c.XName))
}

// short prints a number with k or M.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

// spreadLabels returns the heights of the lines' names, moved apart.
func (c *Places) spreadLabels(top float64) []float64 {
	out := make([]float64, len(c.Series))
	taken := []float64{}
	for i, l := range c.Series {
		y := placesHeight - placesBottom + 0.0
		for j := len(l.Values) - 1; j >= 0; j-- {
			if !math.IsNaN(l.Values[j]) {
				y = c.y(l.Values[j], top)
				break
			}
		}
		for moved := true; moved; {
			moved = false
			for _, t := range taken {
				if math.Abs(t-y) < 13 {
					y, moved = t+13, true
				}
			}
		}
		taken = append(taken, y)
		out[i] = y
	}
	return out
}

func (c *Places) line(s *strings.Builder, i int, l Series, top, labelY float64) {
	colour, dash := colours[i%len(colours)], ""
	if l.Dashed {
		colour, dash = "#555", ` stroke-dasharray="5 4"`
	}
	var path strings.Builder
	command := "M"
	end := float64(placesLeft)
	for j, v := range l.Values {
		if math.IsNaN(v) {
			command = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, c.x(j), c.y(v, top))
		command = "L"
		end = c.x(j)
		fmt.Fprintf(s, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s at %s: %s</title></circle>`+"\n", c.x(j), c.y(v, top), colour, html.EscapeString(l.Label), html.EscapeString(c.X[j]), short(v))
	}
	fmt.Fprintf(s, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"%s/><text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", path.String(), colour, dash, end+8, labelY+4, colour, html.EscapeString(l.Label))
}
