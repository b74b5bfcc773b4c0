package retail

import (
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/heddle-stream/heddle/program"
)

// loops are serial programs over the same invoices.
func loops(c *program.Config, opening map[string]int64, invoices int) []program.Loop {
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		list, err := readAll(c.Input, invoices)
		if err != nil {
			// Read whole when the instance was made, so not what the user gave.
			panic(fmt.Sprintf("the input changed since it was opened: %v", err))
		}
		left := maps.Clone(opening)
		sold, customers := make(map[string]int64, len(opening)), map[uint32]int64{}
		cost := c.Cost("complexity")
		return func() { overMaps(list, left, sold, customers, cost) }
	}}}
}

// readAll returns the first n invoices.
func readAll(path string, n int) (list []Invoice, err error) {
	r, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.rows.Close()) }()
	for len(list) < n {
		v, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func overMaps(invoices []Invoice, left, sold map[string]int64, customers map[uint32]int64, cost program.Cost) {
	for i := range invoices {
		v := &invoices[i]
		done := 0
		for _, l := range v.Lines {
			cost.SpendTimes(1)
			if l.Qty > 0 && left[l.Code] < l.Qty {
				break
			}
			left[l.Code] -= l.Qty
			sold[l.Code] += l.Qty
			done++
		}
		if done == len(v.Lines) {
			cost.SpendTimes(1)
			customers[v.Customer] += v.Cents()
			continue
		}
		for _, l := range v.Lines[:done] {
			left[l.Code] += l.Qty
			sold[l.Code] -= l.Qty
		}
	}
}
