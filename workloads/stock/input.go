package stock

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/heddle-stream/heddle/program"
)

var columns = []string{"id", "timestamp", "exchange.timestamp", "price", "volume", "action", "direction"}

const (
	priceMax  = 100_000_000         // cents
	volumeMax = 100_000_000_000_000 // 1e-8 BTC
	// worthMax bounds price times volume, so that a window of many orders can be
	// added up in 64 bits.
	worthMax = 10_000_000_000_000_000
)

// flow is the input.
type flow struct {
	rows []Row
	of   [kinds]int
	ids  int // ids that rows tell of
	last int64
}

// read returns the rows of the input, or of the generated one.
func read(c *program.Config) (f *flow, err error) {
	rows, err := open(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return readFlow(rows, c.Events)
}

func open(c *program.Config) (*program.Rows, error) {
	if c.Input != "" {
		return program.OpenRows(c.Input, columns...)
	}
	n := c.Events
	if n == 0 {
		n = sampleRows
	}
	return program.NewRows("generated", io.NopCloser(newSample(c.Seed, n)), columns...)
}

// readFlow reads rows, all of them if limit is 0. It follows each order to find
// the price that it had before: where it stands in the book.
func readFlow(rows *program.Rows, limit int) (*flow, error) {
	f := &flow{}
	prices := map[uint64]int64{}
	seen := map[uint64]struct{}{}
	for (limit == 0 || len(f.rows) < limit) && rows.Next() {
		e, deleted := readRow(rows)
		if e.Time < f.last {
			return nil, rows.Fail(1, fmt.Sprintf("timestamp %d: must not be before %d, that of the row above", e.Time, f.last))
		}
		f.last = e.Time
		old, ok := prices[e.ID]
		if e.Kind == Created || !ok {
			old = e.Price
		}
		if e.Old = old; e.Kind == Changed && old != e.Price {
			e.Kind = Moved
		}
		prices[e.ID] = e.Price
		if deleted {
			delete(prices, e.ID)
		}
		seen[e.ID] = struct{}{}
		f.of[e.Kind]++
		f.rows = append(f.rows, e)
	}
	f.ids = len(seen)
	return f, rows.Err()
}

// readRow returns the current row as far as it tells by itself.
func readRow(rows *program.Rows) (e Row, deleted bool) {
	e = Row{ID: uint64(rows.Int(0, 0, math.MaxInt64)), Time: rows.Int(1, 0, math.MaxInt64)}
	rows.Int(2, 0, math.MaxInt64) // when the order was entered; of no use here
	price, ok := cents(rows.Text(3))
	if !ok {
		_ = rows.Fail(3, fmt.Sprintf("price %.20q: a number from 0.01 to 1000000.00 with two decimals is allowed", rows.Text(3)))
		price = 1
	}
	e.Price, e.Volume = price, rows.Int(4, 0, volumeMax)
	if e.Volume > worthMax/price {
		_ = rows.Fail(4, fmt.Sprintf("volume %d: at most %d is allowed at a price of %s", e.Volume, worthMax/price, rows.Text(3)))
	}
	switch action := rows.Text(5); {
	case action == "created" && e.Volume == 0:
		_ = rows.Fail(4, "volume 0: an order is created with more")
	case action == "created":
		e.Kind = Created
	case action == "changed":
		e.Kind = Changed
	case action == "deleted":
		deleted, e.Kind = true, Cancelled
		if e.Volume == 0 {
			e.Kind = Executed
		}
	default:
		_ = rows.Fail(5, fmt.Sprintf("action %.20q: created, changed or deleted is allowed", action))
	}
	switch side := rows.Text(6); side {
	case "bid":
		e.Side = Bid
	case "ask":
		e.Side = Ask
	default:
		_ = rows.Fail(6, fmt.Sprintf("direction %.20q: bid or ask is allowed", side))
	}
	return e, deleted
}

// cents returns a price with two decimals in cents.
func cents(s string) (int64, bool) {
	whole, part, _ := strings.Cut(s, ".")
	if len(part) != 2 || whole == "" || len(whole) > 7 || whole[0] == '0' && whole != "0" {
		return 0, false
	}
	n := int64(0)
	for _, digit := range []byte(whole + part) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = 10*n + int64(digit-'0')
	}
	return n, n >= 1 && n <= priceMax
}
