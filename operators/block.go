package operators

import "slices"

// Block is some items of a stream with their event times, and behind a shuffle the hashes
// of their keys.
type Block[T any] struct {
	Items  []T
	Times  []int64 // ns
	Hashes []uint64
}

func (b *Block[T]) clear() {
	clear(b.Items)
	b.Items, b.Times, b.Hashes = b.Items[:0], b.Times[:0], b.Hashes[:0]
}

func (b *Block[T]) add(item T, time int64) {
	b.Items, b.Times = append(b.Items, item), append(b.Times, time)
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
	deliver(partition int, to any) error
	// clear forgets what was delivered.
	clear()
}

// mail is an exchange for items of one type.
type mail[T any] struct {
	boxes   [][]Block[T] // by partition in front, and behind
	hash    func(*T) uint64
	shift   uint // of a hash, to the number of a partition
	all     bool // to every partition
	byTime  bool // behind windows: in the order of their times
	scratch []Block[T]
}

type mailing struct {
	from, to int
	hash     any // func(*T) uint64 where keys say who gets what, or nil
	all      bool
	byTime   bool
	bits     uint
}

func newMail[T any](how mailing) exchange {
	m := &mail[T]{all: how.all, byTime: how.byTime, shift: 64 - how.bits, scratch: make([]Block[T], how.to)}
	if how.hash != nil {
		m.hash = how.hash.(func(*T) uint64)
	}
	for range how.from {
		m.boxes = append(m.boxes, make([]Block[T], how.to))
	}
	return m
}

func (m *mail[T]) outlet(partition int) any {
	boxes := m.boxes[partition]
	switch {
	case m.hash != nil:
		return taker[T](func(b *Block[T]) error {
			for i := range b.Items {
				h := m.hash(&b.Items[i])
				box := &boxes[h>>m.shift]
				box.add(b.Items[i], b.Times[i])
				box.Hashes = append(box.Hashes, h)
			}
			return nil
		})
	case m.all:
		return taker[T](func(b *Block[T]) error {
			for i := range boxes {
				boxes[i].append(b)
			}
			return nil
		})
	case len(boxes) == 1:
		return taker[T](func(b *Block[T]) error { boxes[0].append(b); return nil })
	}
	return taker[T](func(b *Block[T]) error { boxes[partition].append(b); return nil })
}

func (b *Block[T]) append(o *Block[T]) {
	b.Items, b.Times, b.Hashes = append(b.Items, o.Items...), append(b.Times, o.Times...), append(b.Hashes, o.Hashes...)
}

func (m *mail[T]) deliver(partition int, to any) error {
	in := to.(inlet[T])
	if m.byTime && len(m.boxes) > 1 {
		return in.take(m.merged(partition))
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

// merged returns what came for a partition in the order of its times, of partitions in front
// where these are equal.
func (m *mail[T]) merged(partition int) *Block[T] {
	all := &m.scratch[partition]
	all.clear()
	for from := range m.boxes {
		all.append(&m.boxes[from][partition])
	}
	if slices.IsSorted(all.Times) {
		return all
	}
	order := make([]int, len(all.Items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case all.Times[a] < all.Times[b]:
			return -1
		case all.Times[a] > all.Times[b]:
			return 1
		}
		return 0
	})
	sorted := &Block[T]{}
	for _, i := range order {
		sorted.add(all.Items[i], all.Times[i])
		if len(all.Hashes) > 0 {
			sorted.Hashes = append(sorted.Hashes, all.Hashes[i])
		}
	}
	return sorted
}

func (m *mail[T]) clear() {
	for _, boxes := range m.boxes {
		for i := range boxes {
			boxes[i].clear()
		}
	}
}
