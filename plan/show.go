package plan

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// said is what was set of a vertex or an edge, by property.
func (g *Graph) said(id ID) (props []string, values []value) {
	for key := range g.settings {
		if key.of == id {
			props = append(props, key.prop)
		}
	}
	slices.Sort(props)
	for _, p := range props {
		values = append(values, g.settings[setting{id, p}])
	}
	return props, values
}

func (g *Graph) line(id ID) string {
	props, values := g.said(id)
	var b strings.Builder
	for i, p := range props {
		fmt.Fprintf(&b, " %s=%v", p, values[i].is)
	}
	return b.String()
}

// Text writes the plan for people: a line for each vertex, and for each of its inputs.
func (g *Graph) Text(w io.Writer) error {
	var b strings.Builder
	for _, v := range g.vertices {
		fmt.Fprintf(&b, "%-11s %s%s\n", v.Kind, v.ID, g.line(v.ID))
		for _, e := range g.In(v.ID) {
			fmt.Fprintf(&b, "%11s   from %s, %s%s\n", "", e.From, e.Pattern, g.line(e.ID))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Manifest tells what of a plan the form of its state depends on, by vertex and edge: who goes on
// with the state has to have the same.
func (g *Graph) Manifest() map[string]string {
	m := map[string]string{}
	for _, v := range g.vertices {
		m[string(v.ID)] = fmt.Sprintf("%s in %d partitions, slices of %d, access %s", v.Kind, Parallelism.Of(g, v.ID), SliceNanos.Of(g, v.ID), Access.Of(g, v.ID))
	}
	for _, e := range g.edges {
		m[string(e.ID)] = e.Pattern.String()
		if Fuse.Of(g, e.ID) {
			m[string(e.ID)] += ", fused"
		}
	}
	return m
}

// Explain tells what is set of a vertex or an edge, and by which pass.
func (g *Graph) Explain(w io.Writer, id ID) error {
	var b strings.Builder
	if v, ok := g.Vertex(id); ok {
		fmt.Fprintf(&b, "%s is a %s", id, v.Kind)
		if v.by != "" {
			fmt.Fprintf(&b, " that pass %s put in", v.by)
		}
	} else if i := g.edge(id); i >= 0 {
		e := g.edges[i]
		fmt.Fprintf(&b, "%s is a %s from %s to input %d of %s", id, e.Pattern, e.From, e.Port, e.To)
	} else {
		return fmt.Errorf("job %s has no vertex or edge %s: there are %s", g.name, id, strings.Join(g.ids(), ", "))
	}
	props, values := g.said(id)
	if len(props) == 0 {
		b.WriteString("; nothing is set of it")
	}
	b.WriteString("\n")
	for i, p := range props {
		how := "set"
		if values[i].fixed {
			how = "fixed"
		}
		fmt.Fprintf(&b, "%s = %v, %s by pass %s\n", p, values[i].is, how, values[i].by)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g *Graph) ids() (ids []string) {
	for _, v := range g.vertices {
		ids = append(ids, string(v.ID))
	}
	for _, e := range g.edges {
		ids = append(ids, string(e.ID))
	}
	return ids
}

// SVG draws the plan: vertices in columns by how far they are from a source.
func (g *Graph) SVG(w io.Writer) error {
	const width, height, gapX, gapY = 190, 46, 70, 22
	column, rows := map[ID]int{}, map[int]int{}
	at := map[ID][2]int{}
	var boxes, lines strings.Builder
	for _, v := range g.vertices {
		for _, e := range g.In(v.ID) {
			column[v.ID] = max(column[v.ID], column[e.From]+1)
		}
		c := column[v.ID]
		x, y := 10+c*(width+gapX), 10+rows[c]*(height+gapY)
		rows[c]++
		at[v.ID] = [2]int{x, y}
		fmt.Fprintf(&boxes, `<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="#444"/><text x="%d" y="%d">%s</text><text x="%d" y="%d" fill="#555" font-size="10">%s</text></g>`+"\n",
			html.EscapeString(strings.TrimSpace(g.line(v.ID))), x, y, width, height, colour(v.Kind), x+8, y+19, html.EscapeString(string(v.ID)), x+8, y+36, v.Kind)
	}
	columns, most := 0, 0
	for c, n := range rows {
		columns, most = max(columns, c+1), max(most, n)
	}
	for _, e := range g.edges {
		a, b := at[e.From], at[e.To]
		dash := ""
		if e.Pattern != OneToOne {
			dash = ` stroke-dasharray="5 3"`
		}
		stroke := 1
		if Fuse.Of(g, e.ID) {
			stroke = 4
		}
		fmt.Fprintf(&lines, `<path d="M%d %d C%d %d %d %d %d %d" fill="none" stroke="#666" stroke-width="%d"%s><title>%s, %s%s</title></path>`+"\n",
			a[0]+width, a[1]+height/2, a[0]+width+gapX/2, a[1]+height/2, b[0]-gapX/2, b[1]+height/2, b[0], b[1]+height/2, stroke, dash,
			html.EscapeString(string(e.ID)), e.Pattern, html.EscapeString(g.line(e.ID)))
	}
	w1, h1 := 20+columns*(width+gapX), 20+most*(height+gapY)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13">
%s%s</svg>
`, w1, h1, w1, h1, lines.String(), boxes.String())
	return err
}

func colour(k Kind) string {
	return [...]string{"#d7ebff", "#f4f4f4", "#f4f4f4", "#fff0cc", "#ffe0d0", "#e2d8ff", "#dcf5dc", "#eeeeee"}[k]
}
