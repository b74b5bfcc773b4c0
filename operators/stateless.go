package operators

type mapOp[T, U any] struct {
	emits[U]
	f func(*T) U
}

func (op *mapOp[T, U]) EqualTo(other any) bool {
	o, ok := other.(*mapOp[T, U])
	return ok && same(op.f, o.f)
}

func (op *mapOp[T, U]) build(t *task, out any) []any {
	to, made := out.(inlet[U]), Block[U]{}
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		made.Items = made.Items[:0]
		for i := range b.Items {
			made.Items = append(made.Items, op.f(&b.Items[i]))
		}
		made.Times, made.Ranks, made.Marks = b.Times, b.Ranks, b.Marks
		return to.take(&made)
	}))}
}

type filterOp[T any] struct {
	emits[T]
	keep func(*T) bool
}

func (op *filterOp[T]) EqualTo(other any) bool {
	o, ok := other.(*filterOp[T])
	return ok && same(op.keep, o.keep)
}

func (op *filterOp[T]) build(t *task, out any) []any {
	to, kept := out.(inlet[T]), Block[T]{}
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		kept.Items, kept.Times, kept.Ranks, kept.Marks = kept.Items[:0], kept.Times[:0], kept.Ranks[:0], kept.Marks[:0]
		for i := range b.Items {
			if op.keep(&b.Items[i]) {
				kept.Items = append(kept.Items, b.Items[i])
				carry(&kept, b, i)
			}
		}
		if len(kept.Items) == 0 {
			return nil
		}
		return to.take(&kept)
	}))}
}

type flatMapOp[T, U any] struct {
	emits[U]
	f func(*T, func(U))
}

func (op *flatMapOp[T, U]) EqualTo(other any) bool {
	o, ok := other.(*flatMapOp[T, U])
	return ok && same(op.f, o.f)
}

func (op *flatMapOp[T, U]) build(t *task, out any) []any {
	to, made := out.(inlet[U]), Block[U]{}
	emit := func(item U) { made.Items = append(made.Items, item) }
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		made.Items, made.Times, made.Ranks, made.Marks = made.Items[:0], made.Times[:0], made.Ranks[:0], made.Marks[:0]
		for i := range b.Items {
			op.f(&b.Items[i], emit)
			for len(made.Times) < len(made.Items) {
				carry(&made, b, i)
			}
		}
		if len(made.Items) == 0 {
			return nil
		}
		return to.take(&made)
	}))}
}

type unionOp[T any] struct {
	emits[T]
	inputs int
}

// OneKey reports that the operator wants all items in one place, to put them in order.
func (op *unionOp[T]) OneKey() bool { return true }

func (op *unionOp[T]) byTime() bool { return true }

func (op *unionOp[T]) build(t *task, out any) []any {
	c, to, made := t.counters(), out.(inlet[T]), Block[T]{}
	var all []timed[T]
	lastTimed(t, "waiting", &all)
	t.atEnd(func(watermark int64) error {
		err := eachRipe(&all, watermark, func(x *timed[T]) error {
			made.add(x.item, x.at)
			return flushFull(&made, c, to)
		})
		if err != nil {
			return err
		}
		return flush(&made, c, to)
	})
	ins := make([]any, op.inputs)
	for port := range ins {
		ins[port] = waits(&all, port, c)
	}
	return ins
}
