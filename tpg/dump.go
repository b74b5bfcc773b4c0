package tpg

import (
	"fmt"
	"io"
	"strings"
)

// Names tells what to call an operation and the row of an access.
type Names interface {
	OperationName(id uint32) string
	RowName(id uint32) string
}

// Dump writes the graph as text, an operation a line, with the operations that
// it waits for: "3.1 credit accounts[b] <- 2.0 T, 1.0 P". Operations are named
// by event and place.
func (g *Graph) Dump(w io.Writer, n Names) error {
	var err error
	g.Operations(func(id uint32) bool {
		var deps []string
		g.Dependencies(id, func(on uint32, temporal bool) {
			kind := "P"
			if temporal {
				kind = "T"
			}
			deps = append(deps, g.place(on)+" "+kind)
		})
		line := fmt.Sprintf("%s %s %s", g.place(id), n.OperationName(id), n.RowName(id))
		if len(deps) > 0 {
			line += " <- " + strings.Join(deps, ", ")
		}
		_, err = fmt.Fprintln(w, line)
		return err == nil
	})
	return err
}

// place names an operation by its event and its place among the event's operations.
func (g *Graph) place(id uint32) string {
	e := g.Acc[id].Event
	n := 0
	for i := g.TxLo[e]; i < id; i++ {
		if !g.Acc[i].IsRead() {
			n++
		}
	}
	return fmt.Sprintf("%d.%d", e, n)
}

// DOT writes the graph in Graphviz's language: a box per transaction (logical
// edges), solid temporal and dashed parametric edges. At most limit events.
func (g *Graph) DOT(w io.Writer, n Names, limit int) error {
	var b strings.Builder
	b.WriteString("digraph batch {\n  rankdir=LR; node [shape=box, style=rounded, fontname=sans, fontsize=10];\n")
	events := min(g.Events, limit)
	for e := range events {
		fmt.Fprintf(&b, "  subgraph cluster_%d { label=\"event %d\"; color=gray; fontname=sans; fontsize=9;\n", e, e)
		for id := g.TxLo[e]; id < g.TxHi[e]; id++ {
			if !g.Acc[id].IsRead() {
				fmt.Fprintf(&b, "    n%d [label=%q];\n", id, n.OperationName(id)+"\n"+n.RowName(id))
			}
		}
		b.WriteString("  }\n")
	}
	g.Operations(func(id uint32) bool {
		if int(g.Acc[id].Event) >= events {
			return false
		}
		g.Dependencies(id, func(on uint32, temporal bool) {
			style := " [style=dashed, color=steelblue]"
			if temporal {
				style = ""
			}
			fmt.Fprintf(&b, "  n%d -> n%d%s;\n", on, id, style)
		})
		return true
	})
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
