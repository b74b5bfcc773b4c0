package stock

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
)

// Program is the workload.
var Program = program.Program{
	Name:       "stock",
	About:      "stock exchange: the order flow of a limit-order book, each order told the turnover of the last minute",
	ReadsInput: true,
	Params: []program.Param{
		{Name: "window", Kind: program.Int, Default: "60000", Min: 1, Max: 1_000_000_000, Usage: "time that the turnover is of, in ms"},
		program.Complexity,
	},
	New: newInstance,
}

func newInstance(c *program.Config) (*program.Instance, error) {
	f, err := read(c)
	if err != nil {
		return nil, err
	}
	window, cost := c.Int("window"), c.Cost("complexity")
	a := New(window, cost)
	orders := a.count()
	return &program.Instance{
		App:    a.App,
		Source: a.Rows.Slice(f.rows),
		Total:  len(f.rows),
		Check:  func() error { return a.check(*orders) },
		Loops:  f.loops(window, cost),
		Notes:  f.notes(),
	}, nil
}

// count returns how many orders were entered and not removed, by the results.
func (a *App) count() *int {
	n := new(int)
	a.Rows.Each(func(r Result) {
		switch {
		case !r.Done:
		case r.Kind == Created:
			*n++
		case r.Kind == Executed || r.Kind == Cancelled:
			*n--
		}
	})
	return n
}

func (f *flow) notes() []string {
	return []string{
		fmt.Sprintf("%d rows of %d orders in %d s", len(f.rows), f.ids, f.seconds()),
		fmt.Sprintf("events: %d created, %d changed, %d moved, %d executed, %d cancelled",
			f.of[Created], f.of[Changed], f.of[Moved], f.of[Executed], f.of[Cancelled]),
		fmt.Sprintf("%d rows tell of an order that was not created before", f.unknown()),
	}
}

func (f *flow) seconds() int64 {
	if len(f.rows) == 0 {
		return 0
	}
	return (f.last - f.rows[0].Time) / 1000
}

// unknown counts the rows of orders that are not in the book as the rows have it.
func (f *flow) unknown() int {
	known, n := map[uint64]bool{}, 0
	for i := range f.rows {
		e := &f.rows[i]
		if e.Kind != Created && !known[e.ID] {
			n++
		}
		switch e.Kind {
		case Created:
			known[e.ID] = true
		case Executed, Cancelled:
			delete(known, e.ID)
		case Changed, Moved, kinds:
		}
	}
	return n
}
