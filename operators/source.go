package operators

import (
	"math"

	"github.com/heddle-stream/heddle/plan"
)

// Input is where the items of a source come from.
type Input[T any] struct {
	// Total is how many items there are.
	Total int64
	// Fill makes the items from number first on. Several goroutines call it at once, for
	// different parts.
	Fill func(dst []T, first int64)
	// Time returns the event time of an item, in ns.
	Time func(item *T) int64
	// Disorder is by how many ns an item may be earlier than the latest one before it. One
	// that is earlier still is late: it is counted and left out.
	Disorder int64
	// LeapMax is by how many ns an item may be later than all before it; 0 for no limit. One
	// that is later still is counted and left out: its time must be wrong, and would make all
	// others late. Times beyond 146 years from 1970 are left out always.
	LeapMax int64
	// Late and Far, if set, get the items that are left out: a side output. One goroutine
	// calls them, in the order of the items.
	Late, Far func(item *T)
}

// Slice is an input of items in memory, which are not copied before they are read.
func Slice[T any](items []T, time func(item *T) int64) Input[T] {
	return Input[T]{
		Total: int64(len(items)),
		Fill:  func(dst []T, first int64) { copy(dst, items[first:]) },
		Time:  time,
	}
}

// From makes the stream of an input.
func From[T any](j *Job, name string, in Input[T]) Stream[T] {
	j.b.Vertex(plan.ID(name), plan.Source, &sourceOp[T]{in: in})
	return Stream[T]{j, plan.ID(name)}
}

type sourceOp[T any] struct {
	emits[T]
	in Input[T]
}

func (op *sourceOp[T]) build(t *task, out any) []any {
	return []any{out}
}

// source reads batches of items.
type source interface {
	// begin returns how many items the next batch has.
	begin(most int) (n int)
	// fill makes part i of n.
	fill(i, n int)
	// settle leaves out what is late, and returns the watermark and whether all is read.
	settle(c *Counters) (watermark int64, done bool)
	// push gives part i of n to an inlet.
	push(i, n int, to any) error
	// position tells how many items were read and the latest time, seek goes there. It reports
	// false if there are not that many.
	position() (next, latest int64)
	seek(next, latest int64) bool
}

func (op *sourceOp[T]) open() source { return &reading[T]{in: op.in, latest: math.MinInt64} }

// reading is a source that is read.
type reading[T any] struct {
	in     Input[T]
	next   int64
	latest int64 // time of all items so far
	batch  Block[T]
	kept   int // items of the batch that are not left out
}

func (r *reading[T]) begin(most int) int {
	n := int(min(int64(most), r.in.Total-r.next))
	if cap(r.batch.Items) < n {
		r.batch = Block[T]{Items: make([]T, n), Times: make([]int64, n)}
	}
	r.batch.Items, r.batch.Times, r.kept = r.batch.Items[:n], r.batch.Times[:n], 0
	return n
}

func (r *reading[T]) position() (next, latest int64) { return r.next, r.latest }

func (r *reading[T]) seek(next, latest int64) bool {
	r.next, r.latest = next, latest
	return next >= 0 && next <= r.in.Total
}

func part(i, n, items int) (from, to int) { return items * i / n, items * (i + 1) / n }

func (r *reading[T]) fill(i, n int) {
	from, to := part(i, n, len(r.batch.Items))
	r.in.Fill(r.batch.Items[from:to], r.next+int64(from))
	for k := from; k < to; k++ {
		r.batch.Times[k] = r.in.Time(&r.batch.Items[k])
	}
}

// timeMax bounds event times, so that no end of a window overflows: 146 years from 1970 in ns.
const timeMax = int64(1) << 62

func (r *reading[T]) settle(c *Counters) (watermark int64, done bool) {
	b, kept := &r.batch, 0
	for i, t := range b.Times {
		switch {
		case t < -timeMax || t > timeMax:
			c.Far.Add(1)
			aside(r.in.Far, &b.Items[i])
			continue
		case r.latest == math.MinInt64: // the first one says where time begins
			r.latest = t
		case t > r.latest:
			if r.in.LeapMax > 0 && t-r.latest > r.in.LeapMax {
				c.Far.Add(1)
				aside(r.in.Far, &b.Items[i])
				continue
			}
			r.latest = t
		case t < r.latest-r.in.Disorder:
			c.Late.Add(1)
			aside(r.in.Late, &b.Items[i])
			continue
		}
		if kept < i {
			b.Items[kept], b.Times[kept] = b.Items[i], t
		}
		kept++
	}
	r.next += int64(len(b.Items))
	r.kept = kept
	c.In.Add(int64(len(b.Items)))
	c.Out.Add(int64(kept))
	if r.next == r.in.Total {
		return math.MaxInt64, true
	}
	if r.latest == math.MinInt64 {
		return math.MinInt64, false
	}
	return r.latest - r.in.Disorder, false
}

func aside[T any](out func(*T), item *T) {
	if out != nil {
		out(item)
	}
}

func (r *reading[T]) push(i, n int, to any) error {
	from, end := part(i, n, r.kept)
	in := to.(inlet[T])
	for from < end {
		next := min(from+blockItems, end)
		b := Block[T]{Items: r.batch.Items[from:next], Times: r.batch.Times[from:next]}
		if err := in.take(&b); err != nil {
			return err
		}
		from = next
	}
	return nil
}
