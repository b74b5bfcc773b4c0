package tpg

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// SVG draws the graph of the first limit events: operations in columns by
// stratum, those of an event in its colour; temporal edges solid, parametric
// ones dashed.
func (g *Graph) SVG(w io.Writer, n Names, limit int) error {
	const (
		boxW, boxH, gapX, gapY, margin = 170, 34, 60, 10, 30
	)
	var layers Strata
	layers.Operations(g)
	events := min(g.Events, limit)
	rows := make([]int, layers.Count())
	type point struct{ x, y int }
	at := map[uint32]point{}
	var nodes, edges strings.Builder
	tallest, columns := 0, 1
	g.Operations(func(id uint32) bool {
		e := g.Acc[id].Event
		if int(e) >= events {
			return false
		}
		level := layers.Level[id]
		p := point{margin + int(level)*(boxW+gapX), margin + 20 + rows[level]*(boxH+gapY)}
		rows[level]++
		tallest, columns = max(tallest, p.y+boxH), max(columns, int(level)+1)
		at[id] = p
		fmt.Fprintf(&nodes, `<g><rect x="%d" y="%d" width="%d" height="%d" rx="5" fill="hsl(%d 60%% 88%%)" stroke="#555"/><text x="%d" y="%d">%s</text><text x="%d" y="%d" fill="#555">%s</text></g>`+"\n",
			p.x, p.y, boxW, boxH, int(e)*47%360, p.x+6, p.y+14, html.EscapeString(g.place(id)+" "+n.OperationName(id)), p.x+6, p.y+28, html.EscapeString(n.RowName(id)))
		g.Dependencies(id, func(on uint32, temporal bool) {
			from := at[on]
			style := ` stroke="#3a6ea5" stroke-dasharray="5 3"`
			if temporal {
				style = ` stroke="#222"`
			}
			x1, y1, x2, y2 := from.x+boxW, from.y+boxH/2, p.x, p.y+boxH/2
			fmt.Fprintf(&edges, `<path d="M%d %dC%d %d %d %d %d %d" fill="none"%s marker-end="url(#a)"/>`+"\n", x1, y1, x1+gapX/2, y1, x2-gapX/2, y2, x2, y2, style)
		})
		return true
	})
	width := max(620, margin*2+columns*(boxW+gapX))
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">
<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
<rect width="%d" height="%d" fill="white"/><text x="%d" y="20">%d of %d events; columns are strata; solid: temporal, dashed: parametric; one colour per event</text>
%s%s</svg>
`, width, tallest+margin, width, tallest+margin, width, tallest+margin, margin, events, g.Events, edges.String(), nodes.String())
	return err
}
