package operators

import "github.com/heddle-stream/heddle/storage/window"

// owning is an operator of which each key has windows of its own: by time, or by how many items
// there are.
type owning[K comparable, T, R any] struct {
	op    *windowed[K, R]
	key   func(*T) K
	gap   func(*T) int64
	store window.UnalignedStore
	// put adds an item to a window of the store, and fire makes results of what one or several have.
	put  func(id uint32, expected int64, item *T) error
	fire func(key K, w Span, parts [][]byte, emit func(R)) error
}

// build returns the inlet of a partition.
func (o owning[K, T, R]) build(t *task, c *Counters, to inlet[R]) any {
	if o.op.w.kind == counting {
		return counts[K, T, R]{o}.build(t, c, to)
	}
	sessions, fired, parts := newSessions(&o.op.w, o.store, t, &o.op.keys), Block[R]{}, make([][]byte, 1)
	put := func(item *T, k K, hash uint64, at int64) error {
		s, err := sessions.at(k, hash, at, o.gap(item))
		if err != nil {
			return err
		}
		return o.put(s.id, s.span.End, item)
	}
	end := func(watermark int64) error {
		return sessions.fire(watermark, &o.op.keys, c, func(s *sessionOf[K], contents []byte) error {
			parts[0] = contents
			if err := o.fire(s.key, s.span, parts, func(r R) { fired.put(r, lastInstant(s.span.End), s.hash) }); err != nil {
				return err
			}
			return flushFull(&fired, c, to)
		}, func() error { return flush(&fired, c, to) })
	}
	if o.op.w.kind == pane {
		return o.inOrder(t, c, put, end)
	}
	t.atEnd(end)
	return inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			item := &b.Items[i]
			if err := put(item, o.key(item), b.Hashes[i], b.Times[i]); err != nil {
				return err
			}
		}
		return nil
	}))
}

// inOrder lets items wait until the watermark has passed them, and puts them in the order of their
// times.
func (o owning[K, T, R]) inOrder(t *task, c *Counters, put func(item *T, k K, hash uint64, at int64) error, end func(watermark int64) error) any {
	var waiting []timed[T]
	lastTimed(t, "waiting", &waiting)
	t.atEnd(func(watermark int64) error {
		err := eachRipe(&waiting, watermark, func(x *timed[T]) error {
			k := o.key(&x.item)
			return put(&x.item, k, o.op.keys.hash(k), x.at)
		})
		if err != nil {
			return err
		}
		return end(watermark)
	})
	return waits(&waiting, 0, c)
}
