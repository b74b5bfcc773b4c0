package operators

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// Block is some items of a stream with their event times, behind a shuffle the hashes of
// their keys, and behind an operator with a state by key the hashes of the keys that they come
// from: their ranks among items of one time. Of a source that lets late items go on there are
// marks: the watermark when an item came, which a late one has missed.
type Block[T any] struct {
	Items  []T
	Times  []int64 // ns
	Hashes []uint64
	Ranks  []uint64
	Marks  []int64
}

// missed returns the watermark that an item has missed; one that is not late has missed none.
func (b *Block[T]) missed(i int) int64 {
	if len(b.Marks) == 0 || b.Marks[i] <= b.Times[i] {
		return math.MinInt64
	}
	return b.Marks[i]
}

// late adds the items that are late to a counter, and reports whether there are any.
func (b *Block[T]) late(c *Counters) bool {
	n := int64(0)
	for i := range b.Marks {
		if b.missed(i) != math.MinInt64 {
			n++
		}
	}
	c.Late.Add(n)
	return n > 0
}

func (b *Block[T]) clear() {
	clear(b.Items)
	b.Items, b.Times, b.Hashes, b.Ranks, b.Marks = b.Items[:0], b.Times[:0], b.Hashes[:0], b.Ranks[:0], b.Marks[:0]
}

func (b *Block[T]) add(item T, time int64) {
	b.Items, b.Times = append(b.Items, item), append(b.Times, time)
}

// put adds an item that comes from a key with a hash.
func (b *Block[T]) put(item T, time int64, rank uint64) {
	b.add(item, time)
	b.Ranks = append(b.Ranks, rank)
}

// carry gives an item that is made of one of another block what goes on with it: time, rank and mark.
func carry[T, U any](to *Block[U], from *Block[T], i int) {
	to.Times = append(to.Times, from.Times[i])
	if len(from.Ranks) > 0 {
		to.Ranks = append(to.Ranks, from.Ranks[i])
	}
	if len(from.Marks) > 0 {
		to.Marks = append(to.Marks, from.Marks[i])
	}
}

// inlet is where an operator takes its input, a block at a time. The block is the caller's.
type inlet[T any] interface{ take(b *Block[T]) error }

// taker makes an inlet of a function.
type taker[T any] func(b *Block[T]) error

func (f taker[T]) take(b *Block[T]) error { return f(b) }

// tee hands blocks to several inlets.
type tee[T any] []inlet[T]

func (t tee[T]) take(b *Block[T]) error {
	for _, in := range t {
		if err := in.take(b); err != nil {
			return err
		}
	}
	return nil
}

// blockItems is how many items a block has, about.
const blockItems = 1024

// exchange is where items wait between two stages.
type exchange interface {
	// outlet returns where a partition in front of it puts its output: an inlet.
	outlet(partition int) any
	// deliver gives what came for a partition behind it to an inlet.
	deliver(partition int, to any, watermark int64) error
	// size is how many items there are for a partition behind it.
	size(partition int) int
	// clear forgets what was delivered.
	clear()
	// lasts makes last what waits for the watermark.
	lasts(e *Exec, edge plan.Edge)
}

// mail is an exchange for items of one type.
type mail[T any] struct {
	boxes   [][]Block[T] // by partition in front, and behind
	hash    func(*T) uint64
	shift   uint      // of a hash, to the number of a partition
	all     bool      // to every partition
	byTime  bool      // in the order of times: see waiting
	inTime  *Counters // if not nil: late items go no further, and are counted
	waiting []waiting[T]
}

// waiting is what came for a partition from others with a state: items wait for the watermark, and
// go on in the order of times, of ranks where these are equal, and as they came. As they
// come, partitions would be mixed by where batches end.
type waiting[T any] struct{ block, ready Block[T] }

type mailing struct {
	from, to int
	hash     any // func(*T) uint64 where keys say who gets what, or nil
	all      bool
	byTime   bool
	inTime   *Counters
	bits     uint
}

func newMail[T any](how mailing) exchange {
	m := &mail[T]{all: how.all, byTime: how.byTime, inTime: how.inTime, shift: 64 - how.bits, waiting: make([]waiting[T], how.to)}
	if how.hash != nil {
		m.hash = how.hash.(func(*T) uint64)
	}
	for range how.from {
		m.boxes = append(m.boxes, make([]Block[T], how.to))
	}
	return m
}

func (m *mail[T]) outlet(partition int) any {
	out := m.sorted(m.boxes[partition], partition)
	if m.inTime == nil {
		return out
	}
	some := Block[T]{}
	return taker[T](func(b *Block[T]) error {
		if !b.late(m.inTime) {
			return out(b)
		}
		some.clear()
		for i := range b.Items {
			if b.missed(i) == math.MinInt64 {
				some.addFrom(b, i)
			}
		}
		return out(&some)
	})
}

// sorted returns the inlet that puts items into the boxes of those who are to get them.
func (m *mail[T]) sorted(boxes []Block[T], partition int) taker[T] {
	switch {
	case m.hash != nil:
		return func(b *Block[T]) error {
			for i := range b.Items {
				h := m.hash(&b.Items[i])
				box := &boxes[h>>m.shift]
				box.Items, box.Hashes = append(box.Items, b.Items[i]), append(box.Hashes, h)
				carry(box, b, i)
			}
			return nil
		}
	case m.all:
		return func(b *Block[T]) error {
			for i := range boxes {
				boxes[i].append(b)
			}
			return nil
		}
	case len(boxes) == 1:
		return func(b *Block[T]) error { boxes[0].append(b); return nil }
	}
	return func(b *Block[T]) error { boxes[partition].append(b); return nil }
}

func (b *Block[T]) append(o *Block[T]) {
	b.Items, b.Times = append(b.Items, o.Items...), append(b.Times, o.Times...)
	b.Hashes, b.Ranks, b.Marks = append(b.Hashes, o.Hashes...), append(b.Ranks, o.Ranks...), append(b.Marks, o.Marks...)
}

func (m *mail[T]) deliver(partition int, to any, watermark int64) error {
	in := to.(inlet[T])
	if m.byTime {
		w := &m.waiting[partition]
		for from := range m.boxes {
			w.block.append(&m.boxes[from][partition])
		}
		if w.take(watermark); len(w.ready.Items) == 0 {
			return nil
		}
		return in.take(&w.ready)
	}
	for from := range m.boxes {
		if b := &m.boxes[from][partition]; len(b.Items) > 0 {
			if err := in.take(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mail[T]) size(partition int) (n int) {
	for from := range m.boxes {
		n += len(m.boxes[from][partition].Items)
	}
	return n
}

// take makes the items ready that the watermark has passed.
func (w *waiting[T]) take(watermark int64) {
	b := &w.block
	order := make([]int32, 0, len(b.Items))
	for i, t := range b.Times {
		if t < watermark || watermark == Never {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		if d := cmp.Compare(b.Times[x], b.Times[y]); d != 0 || len(b.Ranks) == 0 {
			return d
		}
		return cmp.Compare(b.Ranks[x], b.Ranks[y])
	})
	w.ready.clear()
	for _, i := range order {
		w.ready.addFrom(b, int(i))
	}
	late := Block[T]{}
	if len(order) < len(b.Items) {
		for i, t := range b.Times {
			if t >= watermark && watermark != Never {
				late.addFrom(b, i)
			}
		}
	}
	b.clear()
	b.append(&late)
}

// addFrom adds an item of another block with all that is known of it.
func (b *Block[T]) addFrom(o *Block[T], i int) {
	b.Items = append(b.Items, o.Items[i])
	if len(o.Hashes) > 0 {
		b.Hashes = append(b.Hashes, o.Hashes[i])
	}
	carry(b, o, i)
}

func (m *mail[T]) lasts(e *Exec, edge plan.Edge) {
	c := codecOf[T](e, edge.To, "an item that waits")
	for p := range m.waiting {
		b := &m.waiting[p].block
		e.lasting = append(e.lasting, lasting{fmt.Sprintf("%s/%d/waiting %s", edge.ID, p, shapeOf[T]()), func(w *image.Writer) error {
			b.save(w, &c)
			return nil
		}, func(r *image.Reader) error {
			b.load(r, &c)
			return nil
		}})
	}
}

// save writes the items of a block.
func (b *Block[T]) save(w *image.Writer, c *codec.Codec[T]) {
	for i := range b.Items {
		w.Int(b.Times[i])
		for _, known := range [][]uint64{b.Hashes, b.Ranks} {
			if w.Bool(len(known) > 0); len(known) > 0 {
				w.Int(int64(known[i]))
			}
		}
		putValue(w, c, &b.Items[i])
		w.Item()
	}
}

// load adds the items that were saved.
func (b *Block[T]) load(r *image.Reader, c *codec.Codec[T]) {
	for r.Item() {
		var item T
		b.Times = append(b.Times, r.Int())
		for _, known := range []*[]uint64{&b.Hashes, &b.Ranks} {
			if r.Bool() {
				*known = append(*known, uint64(r.Int()))
			}
		}
		getValue(r, c, &item)
		b.Items = append(b.Items, item)
	}
}

func (m *mail[T]) clear() {
	for _, boxes := range m.boxes {
		for i := range boxes {
			boxes[i].clear()
		}
	}
}
