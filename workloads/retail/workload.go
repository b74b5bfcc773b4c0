package retail

import (
	"context"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:       "retail",
	About:      "shop: real invoices of up to a thousand lines take from the stock and charge customers",
	ReadsInput: true,
	Params: []program.Param{
		{Name: "k", Kind: program.Int, Default: "16", Min: 0, Max: 100_000, Usage: "opening stock of an article, in medians of its lines per 100 invoices"},
		program.Complexity,
	},
	New: newInstance,
}

func newInstance(c *program.Config) (*program.Instance, error) {
	s, err := look(c.Input)
	if err != nil {
		return nil, err
	}
	r, err := open(c.Input)
	if err != nil {
		return nil, err
	}
	total := s.invoices
	if c.Events > 0 {
		total = min(total, c.Events)
	}
	opening := s.opening(c.Int("k"))
	a := New(opening, c.Cost("complexity"))
	var done sums
	a.Invoices.Each(done.add)
	return &program.Instance{
		App:    a.App,
		Source: a.source(r, total),
		Total:  total,
		Check:  func() error { return a.check(opening, done) },
		Loops:  loops(c, opening, total),
		Notes:  s.notes(opening),
		Close:  r.rows.Close,
	}, nil
}

// source delivers the first n invoices as they are read.
func (a *App) source(r *reader, n int) txn.Source {
	return txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range min(limit, n) {
			v, err := r.next()
			if err != nil {
				return err
			}
			a.Invoices.Push(f, v)
			n--
		}
		if n == 0 {
			return io.EOF
		}
		return nil
	})
}

func (s *survey) notes(opening map[string]int64) []string {
	pieces, none := int64(0), 0
	for _, n := range opening {
		pieces += n
		if n == 0 {
			none++
		}
	}
	return []string{
		fmt.Sprintf("%d invoices with %d numbers and %d lines; %d are cancellations", s.invoices, len(s.numbers), s.lines, s.cancellations),
		fmt.Sprintf("%d articles; opening stock %d pieces, none of %d articles", len(opening), pieces, none),
		fmt.Sprintf("%d customers, one of them for all who are unknown; %d prices rounded to cents", len(s.customers), s.rounded),
	}
}
