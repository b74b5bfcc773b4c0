package operators

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Input is where the items of a source come from: any part of so many (Total and Fill), or one
// after the other (Read).
type Input[T any] struct {
	// Total is how many items there are.
	Total int64
	// Fill makes the items from number first on. Several goroutines call it at once, for
	// different parts.
	Fill func(dst []T, first int64)
	// Read, if set, is used instead: it reads the next items, as many as there are now, and returns how
	// many; io.EOF is the end. One goroutine calls it. A source that has none now is idle: the
	// watermark does not wait for it until it has some again, and what is older than the watermark
	// then is late.
	Read func(dst []T) (n int, err error)
	// Seek goes to the item with a number, for a job that goes on; without it, those before are read once
	// more.
	Seek func(next int64) error
	// Time returns the event time of an item, in ns. Nil is processing time: that of the clock when
	// the item is read, in ns since 1970.
	Time func(item *T) int64
	// Disorder is by how many ns an item may be earlier than the latest one before it. One
	// that is earlier still is late: it is counted and left out.
	Disorder int64
	// Lateness is by how many ns more a late item may be late to go on nevertheless, to windows that
	// allow for it: see [Windows.Lateness]. Operators that do not count it and leave it out.
	Lateness int64
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
	if in.Total < 0 || in.Disorder < 0 || in.LeapMax < 0 || in.Lateness < 0 {
		j.fail(name, fmt.Errorf("an input with a total of %d, disorder %d, leaps of %d, lateness %d: none may be negative", in.Total, in.Disorder, in.LeapMax, in.Lateness))
	}
	if in.Read == nil && in.Fill == nil && in.Total > 0 {
		j.fail(name, errors.New("an input without Fill and Read"))
	}
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
	begin(most int) (n int, err error)
	// fill makes part i of n.
	fill(i, n int)
	// settle leaves out what is late, or older than a watermark that others heard of, and returns the
	// source's watermark and whether all is read. A source that is idle has none.
	settle(c *Counters, floor int64) (watermark int64, idle, done bool)
	// push gives part i of n to an inlet.
	push(i, n int, to any) error
	// position tells how many items were read and the latest time, seek goes there. It reports
	// false if there are not that many.
	position() (next, latest int64)
	seek(next, latest int64) error
}

func (op *sourceOp[T]) open(e *Exec) source {
	return &reading[T]{in: op.in, latest: math.MinInt64, clock: e.env.Now}
}

// reading is a source that is read.
type reading[T any] struct {
	in     Input[T]
	next   int64
	latest int64 // time of all items so far
	ended  bool
	clock  func() int64
	now    int64 // of the batch
	batch  Block[T]
	kept   int // items of the batch that are not left out
}

func (r *reading[T]) begin(most int) (n int, err error) {
	if n = most; r.in.Read == nil {
		n = int(min(int64(most), r.in.Total-r.next))
	}
	if cap(r.batch.Items) < n {
		r.batch = Block[T]{Items: make([]T, n), Times: make([]int64, n)}
	}
	if r.in.Read != nil && n > 0 {
		n, err = r.in.Read(r.batch.Items[:n])
		if r.ended = errors.Is(err, io.EOF); r.ended {
			err = nil
		}
	}
	r.batch.Items, r.batch.Times, r.kept = r.batch.Items[:n], r.batch.Times[:n], 0
	if r.in.Lateness > 0 && len(r.batch.Marks) < n {
		r.batch.Marks = make([]int64, cap(r.batch.Items))
	}
	if r.in.Time == nil {
		r.now = max(r.clock(), r.latest)
	}
	return n, err
}

func (r *reading[T]) position() (next, latest int64) { return r.next, r.latest }

func (r *reading[T]) seek(next, latest int64) error {
	r.next, r.latest = next, latest
	switch {
	case next < 0 || r.in.Read == nil && next > r.in.Total:
		return image.ErrOther
	case r.in.Read == nil:
		return nil
	case r.in.Seek != nil:
		return r.in.Seek(next)
	}
	return r.skip(next)
}

// skip reads items that were done.
func (r *reading[T]) skip(left int64) error {
	for items := make([]T, blockItems); left > 0; {
		n, err := r.in.Read(items[:min(left, blockItems)])
		left -= int64(n)
		if left > 0 && (n == 0 || err != nil) {
			return fmt.Errorf("the input ends %d items before the one with which the job goes on: it belongs to another input: %w", left, err)
		}
	}
	return nil
}

func part(i, n, items int) (from, to int) { return items * i / n, items * (i + 1) / n }

func (r *reading[T]) fill(i, n int) {
	from, to := part(i, n, len(r.batch.Items))
	if r.in.Read == nil {
		r.in.Fill(r.batch.Items[from:to], r.next+int64(from))
	}
	for k := from; k < to; k++ {
		if r.in.Time != nil {
			r.batch.Times[k] = r.in.Time(&r.batch.Items[k])
		} else {
			r.batch.Times[k] = r.now
		}
	}
}

// timeMax bounds event times, so that no end of a window overflows: 146 years from 1970 in ns.
const timeMax = int64(1) << 62

func (r *reading[T]) settle(c *Counters, floor int64) (watermark int64, idle, done bool) {
	b, kept := &r.batch, 0
	for i, t := range b.Times {
		switch {
		case t < -timeMax || t > timeMax:
			c.Far.Add(1)
			aside(r.in.Far, &b.Items[i])
			continue
		case t < before(r.mark(floor), r.in.Lateness):
			c.Late.Add(1)
			aside(r.in.Late, &b.Items[i])
			continue
		case r.latest == math.MinInt64: // the first one says where time begins
			r.latest = t
		case t > r.latest:
			if r.in.LeapMax > 0 && uint64(t)-uint64(r.latest) > uint64(r.in.LeapMax) {
				c.Far.Add(1)
				aside(r.in.Far, &b.Items[i])
				continue
			}
			r.latest = t
		}
		if kept < i {
			b.Items[kept], b.Times[kept] = b.Items[i], t
		}
		if r.in.Lateness > 0 {
			b.Marks[kept] = r.mark(floor)
		}
		kept++
	}
	r.next += int64(len(b.Items))
	r.kept = kept
	c.In.Add(int64(len(b.Items)))
	c.Out.Add(int64(kept))
	if r.ended || r.in.Read == nil && r.next == r.in.Total {
		return math.MaxInt64, false, true
	}
	if r.in.Read != nil && len(b.Items) == 0 {
		return 0, true, false
	}
	if r.latest == math.MinInt64 {
		return math.MinInt64, false, false
	}
	return before(r.latest, r.in.Disorder), false, false
}

// mark returns the watermark that an item finds: floor is that of a source which was idle.
func (r *reading[T]) mark(floor int64) int64 {
	if r.latest == math.MinInt64 {
		return max(floor, -timeMax)
	}
	return max(floor, before(r.latest, r.in.Disorder))
}

// before returns a time that is earlier by so much, or the earliest one.
func before(at, by int64) int64 {
	if earlier := at - by; earlier <= at {
		return earlier
	}
	return math.MinInt64
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
		if r.in.Lateness > 0 {
			b.Marks = r.batch.Marks[from:next]
		}
		if err := in.take(&b); err != nil {
			return err
		}
		from = next
	}
	return nil
}
