package operators

import (
	"math"
	"slices"

	"github.com/heddle-stream/heddle/internal/image"
)

// countMax is how many items a window has at most, and so what one key holds.
const countMax = 1 << 30

// counts is an operator of which each key has windows of so many items. Windows consist of
// slices, so that an item is kept once: a slice is as many items as divide both size and slide.
type counts[K comparable, T, R any] struct{ owning[K, T, R] }

// counted is what is open of a key.
type counted struct {
	n      int64 // items since the key came
	slices []countSlice
}

// countSlice is some items in a row. It has a window of the store.
type countSlice struct {
	id    uint32
	times Span
}

func (o counts[K, T, R]) build(t *task, c *Counters, to inlet[R]) any {
	open, made, now, rank := map[K]*counted{}, Block[R]{}, int64(0), uint64(0)
	o.last(t, open)
	emit := func(r R) { made.put(r, now, rank) }
	return inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			item := &b.Items[i]
			k := o.key(item)
			x := open[k]
			if x == nil {
				x = &counted{}
				open[k] = x
			}
			now, rank = b.Times[i], b.Hashes[i]
			if err := o.add(x, item, now); err != nil {
				return err
			}
			if x.n >= o.op.w.size && (x.n-o.op.w.size)%o.op.w.slide == 0 {
				c.Fires.Add(1)
				if err := o.fireLast(k, x, emit); err != nil {
					return err
				}
				if len(x.slices) == 0 {
					delete(open, k)
				}
			}
			if err := flushFull(&made, c, to); err != nil {
				return err
			}
		}
		return flush(&made, c, to)
	}))
}

// slice is how many items a slice has.
func (o *counts[K, T, R]) slice() int64 { return gcd(o.op.w.size, o.op.w.slide) }

// add puts an item into the last slice of a key, or into a new one.
func (o *counts[K, T, R]) add(x *counted, item *T, at int64) error {
	if x.n%o.slice() == 0 {
		id, err := o.store.Open()
		if err != nil {
			return err
		}
		x.slices = append(x.slices, countSlice{id, Span{Start: at, End: at + 1}})
	}
	x.n++
	s := &x.slices[len(x.slices)-1]
	s.times = Span{Start: min(s.times.Start, at), End: max(s.times.End, at+1)}
	// When the window is full is not known: that of a key which had nothing for long goes to disk.
	return o.put(s.id, math.MaxInt64-at, item)
}

// fireLast fires the window that ends with the last item, and drops the slices that no later one
// needs.
func (o *counts[K, T, R]) fireLast(k K, x *counted, emit func(R)) error {
	var ids []uint32
	var parts [][]byte
	times := x.slices[0].times
	for _, s := range x.slices {
		ids = append(ids, s.id)
		times = Span{Start: min(times.Start, s.times.Start), End: max(times.End, s.times.End)}
	}
	err := o.store.Each(ids, func(_ int, contents []byte) error {
		parts = append(parts, slices.Clone(contents))
		return nil
	})
	if err == nil {
		err = o.fire(k, times, parts, emit)
	}
	if err != nil {
		return err
	}
	gone := int(o.op.w.slide / o.slice())
	x.slices = slices.Delete(x.slices, 0, gone)
	if len(x.slices) == 0 {
		x.n = 0
	}
	return o.store.Drop(ids[:gone])
}

// last makes what is open last.
func (o *counts[K, T, R]) last(t *task, open map[K]*counted) {
	t.lasts("counts "+shapeOf[K](), func(w *image.Writer) error {
		for key, k := range byBytes(open, &o.op.keys) {
			x := open[k]
			w.Bytes([]byte(key))
			w.Int(x.n)
			w.Int(int64(len(x.slices)))
			for _, s := range x.slices {
				w.Int(int64(s.id))
				w.Int(s.times.Start)
				w.Int(s.times.End)
			}
			w.Item()
		}
		return nil
	}, func(r *image.Reader) error {
		for r.Item() {
			k := o.op.keys.get(r)
			x := &counted{n: r.Int()}
			for range r.Count() {
				x.slices = append(x.slices, countSlice{uint32(r.Int()), Span{Start: r.Int(), End: r.Int()}})
			}
			open[k] = x
		}
		return nil
	})
}
