package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/schedule"
)

type (
	op    = metamorphic.Op
	event = metamorphic.Event
	read  = metamorphic.Read
)

// templates are the transactions that small batches are made of: on two keys,
// with and without a look at the other key, some of which abort depending on
// what stands there, and two operations that must share their fate.
func templates() []event {
	var out []event
	for k := int16(0); k < 2; k++ {
		other := []read{{Table: 0, Key: 1 - k}}
		gain, lose := op{Kind: metamorphic.Add, Key: k, Arg: 3}, op{Kind: metamorphic.Add, Key: k, Arg: -4}
		follow := op{Kind: metamorphic.Add, Key: k, Arg: -3, Reads: other}
		back := op{Kind: metamorphic.Add, Key: 1 - k, Arg: -2}
		bump := op{Kind: metamorphic.Bump, Key: k, Arg: 2}
		out = append(out,
			event{Ops: []op{{Kind: metamorphic.Late, Key: k, Arg: 4, Span: 2, Reads: other}}},
			event{Ops: []op{bump, back}}, event{Ops: []op{bump, lose}},
			event{Ops: []op{gain}}, event{Ops: []op{lose}}, event{Ops: []op{follow}},
			event{Ops: []op{gain, back}}, event{Ops: []op{follow, lose}},
			event{Ops: []op{{Kind: metamorphic.DropOr, Key: k}, {Kind: metamorphic.Put, Key: 1 - k, Arg: 1, Reads: []read{{Table: 0, Key: k, Start: true}}}}},
		)
	}
	return out
}

// steppedOnce runs events with the workers stepped in the order that choose
// gives, beside the serial model.
func steppedOnce(t *testing.T, events []event, strategy string, workers int, fine bool, choose func(step int) int) {
	t.Helper()
	l := metamorphic.New(2)
	_, err := Run(context.Background(), l.App, l.Events.Slice(events), Options{
		Workers: workers, Strategy: strategy, Batch: len(events), Verify: true, NoLatency: true,
		grain: schedule.Grain{Events: 1, Fine: fine, Operations: 1, RedoMax: len(events) % 2},
		drive: func(run *schedule.Run) {
			for step := 0; !run.Finished(); step++ {
				run.Worker(choose(step)).Step()
				if step > 20_000 {
					t.Fatalf("%s does not end: %s\n%s", strategy, run.Diagnosis(), metamorphic.Text(events))
				}
			}
		},
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", strategy, err, metamorphic.Text(events))
	}
}

// All batches of up to three of the small transactions, under every strategy.
func TestExhaustiveSmallBatches(t *testing.T) {
	all := templates()
	var graphs []string
	for _, s := range schedule.Strategies() {
		if s.Kind() == schedule.Graph {
			graphs = append(graphs, s.String())
		}
	}
	every := 1
	if testing.Short() {
		every = 7
	}
	n := 0
	for i := range all {
		for j := range all {
			for k := range all {
				if n++; n%every != 0 {
					continue
				}
				events := []event{all[i], all[j], all[k]}
				s := graphs[n%len(graphs)]
				steppedOnce(t, events, s, 2, n%2 == 0, func(step int) int { return (step ^ step>>2 ^ n) & 1 })
				s = graphs[(n/len(graphs)+n)%len(graphs)]
				steppedOnce(t, events, s, 2, n%3 == 0, func(step int) int { return step & 1 })
			}
		}
	}
}

// Every order of the first steps of two workers, on batches in which an abort
// comes late and decides about others.
func TestExhaustiveInterleavings(t *testing.T) {
	add := func(k int16, arg int64, reads ...read) op {
		return op{Kind: metamorphic.Add, Key: k, Arg: arg, Reads: reads}
	}
	other := func(k int16) read { return read{Table: 0, Key: k} }
	batches := map[string][]event{
		"an abort seen through two others": {
			{Ops: []op{add(0, 9), add(1, -50)}}, {Ops: []op{add(0, 1), add(1, 0, other(0))}}, {Ops: []op{add(1, -1, other(0))}},
		},
		"an abort makes the next one succeed": {
			{Ops: []op{add(0, -5), add(1, 5)}}, {Ops: []op{add(1, -1)}}, {Ops: []op{add(0, 0, other(1))}},
		},
		"a computed key that is another one in its turn": {
			{Ops: []op{add(0, 1)}}, {Ops: []op{{Kind: metamorphic.Late, Arg: 4, Span: 2, Reads: []read{other(0)}}}}, {Ops: []op{add(1, 3, other(0))}},
		},
		"deltas between reads": {
			{Ops: []op{{Kind: metamorphic.Bump, Key: 0, Arg: 3}, add(1, -5)}}, {Ops: []op{{Kind: metamorphic.Bump, Key: 0, Arg: 1}}}, {Ops: []op{add(1, 1, other(0))}},
		},
		"chains that wait for each other": {
			{Ops: []op{add(0, 1, other(1))}}, {Ops: []op{add(1, 1, other(0))}}, {Ops: []op{add(0, 1, other(1)), add(1, -9)}},
		},
	}
	depth := 8
	if testing.Short() {
		depth = 5
	}
	for name, events := range batches {
		for _, s := range schedule.Strategies() {
			if s.Kind() != schedule.Graph {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", name, s), func(t *testing.T) {
				for order := range 1 << depth {
					steppedOnce(t, events, s.String(), 2, order%2 == 1, func(step int) int {
						if step < depth {
							return order >> step & 1
						}
						return step & 1
					})
				}
			})
		}
	}
}
