package operators

import (
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Each ends a stream: a function gets all items, from one goroutine at a time, in order.
func Each[T any](s Stream[T], name string, f func(item *T, time int64) error) {
	add[T, T](s, name, plan.Sink, plan.Shuffle, &eachOp[T]{f: f})
}

type eachOp[T any] struct {
	emits[T]
	f func(*T, int64) error
}

// OneKey reports that the operator wants all items in one place.
func (op *eachOp[T]) OneKey() bool { return true }

func (op *eachOp[T]) build(t *task, _ any) []any {
	c := t.counters()
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		for i := range b.Items {
			if err := op.f(&b.Items[i], b.Times[i]); err != nil {
				return err
			}
		}
		return nil
	}))}
}

// Digest ends a stream and tells what came, whatever the order: see its result, which is
// complete when the job has ended. A job that is run again begins anew.
func Digest[T any](s Stream[T], name string) *Digester[T] {
	c, err := codec.Derive[T]()
	s.job.fail(name, err)
	d := &Digester[T]{codec: c}
	add[T, T](s, name, plan.Sink, plan.OneToOne, &digestOp[T]{d: d})
	return d
}

// Digester is what came of a stream.
type Digester[T any] struct {
	// Keep makes Items keep what comes, and CountOnly leaves out the hash. They are set before
	// the job is executed.
	Keep, CountOnly bool

	codec codec.Codec[T]
	parts []*digest[T]
}

// digest is what came to one partition.
type digest[T any] struct {
	count int64
	hash  xxh3.Uint128
	items []T
}

// last makes what came last.
func (p *digest[T]) last(t *task, d *Digester[T]) {
	t.lasts("came "+shapeOf[T](), func(w *image.Writer) error {
		w.Int(p.count)
		w.Int(int64(p.hash.Hi))
		w.Int(int64(p.hash.Lo))
		w.Item()
		for i := range p.items {
			putValue(w, &d.codec, &p.items[i])
			w.Item()
		}
		return nil
	}, func(r *image.Reader) error {
		r.Want()
		p.count, p.hash = r.Int(), xxh3.Uint128{Hi: uint64(r.Int()), Lo: uint64(r.Int())}
		for r.Item() {
			var item T
			getValue(r, &d.codec, &item)
			p.items = append(p.items, item)
		}
		return nil
	})
}

// Count returns how many items came.
func (d *Digester[T]) Count() (n int64) {
	for _, p := range d.parts {
		n += p.count
	}
	return n
}

// Hash returns the sum of the hashes of all items.
func (d *Digester[T]) Hash() string {
	var sum xxh3.Uint128
	for _, p := range d.parts {
		sum = plus(sum, p.hash)
	}
	return fmt.Sprintf("%016x%016x", sum.Hi, sum.Lo)
}

// Items returns what was kept, which is the caller's.
func (d *Digester[T]) Items() (all []T) {
	for _, p := range d.parts {
		all = append(all, p.items...)
	}
	return all
}

// Encode returns the bytes that stand for an item in the hash.
func (d *Digester[T]) Encode(item *T) []byte { return d.codec.Append(nil, item) }

func plus(a, b xxh3.Uint128) xxh3.Uint128 {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(a.Hi, b.Hi, carry)
	return xxh3.Uint128{Hi: hi, Lo: lo}
}

type digestOp[T any] struct {
	emits[T]
	d *Digester[T]
}

func (op *digestOp[T]) build(t *task, _ any) []any {
	c, d, p := t.counters(), op.d, &digest[T]{}
	if t.partition == 0 { // of this execution
		d.parts = nil
	}
	d.parts = append(d.parts, p)
	p.last(t, d)
	var buf []byte
	return []any{inlet[T](taker[T](func(b *Block[T]) error {
		c.In.Add(int64(len(b.Items)))
		p.count += int64(len(b.Items))
		if d.Keep {
			p.items = append(p.items, b.Items...)
		}
		if d.CountOnly {
			return nil
		}
		for i := range b.Items {
			buf = d.codec.Append(buf[:0], &b.Items[i])
			p.hash = plus(p.hash, xxh3.Hash128(buf))
		}
		return nil
	}))}
}
