package windowtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/window"
)

// Subject is a store with its model.
type Subject interface {
	window.Store
	// Step does something at random to both.
	Step(t *testing.T, r *rng.RNG, n int)
	// Check compares both.
	Check(t *testing.T)
	// Clear drops all windows.
	Clear(t *testing.T)
	// Again returns a new store with a copy of the model.
	Again(t *testing.T, stores window.Stores, o window.Options) Subject
}

// Kind is a kind of stores.
type Kind struct {
	Name  string
	Width int // of values that are changed; 0 for lists
	// Empty makes a store of the kind.
	Empty func(t testing.TB, stores window.Stores, o window.Options) Subject
}

const (
	keysMax          = 5000 // in windows that all keys share
	accumulatorWidth = 16
)

// Kinds returns what stores there are.
func Kinds() []Kind {
	all := []Kind{
		{"accumulators", accumulatorWidth, func(t testing.TB, stores window.Stores, o window.Options) Subject {
			s, err := stores.Accumulators(o, accumulatorWidth, Sum)
			must(t, err)
			return &accumulators{s, keyed[uint64]{}}
		}},
		{"lists", 0, func(t testing.TB, stores window.Stores, o window.Options) Subject {
			s, err := stores.Lists(o)
			must(t, err)
			return &lists{s, keyed[[]string]{}}
		}},
	}
	for _, width := range []int{0, 16, window.WidthMax} {
		all = append(all, Kind{fmt.Sprint("unaligned ", width), width, func(t testing.TB, stores window.Stores, o window.Options) Subject {
			s, err := stores.Unaligned(o, width, Sum)
			must(t, err)
			return &unaligned{s, width, map[uint32][]string{}}
		}})
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Sum adds the first eight bytes of two values.
func Sum(into, from []byte) {
	binary.LittleEndian.PutUint64(into, binary.LittleEndian.Uint64(into)+binary.LittleEndian.Uint64(from))
}

// one is a value of 1, to be added to others.
var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// HashOf makes few enough distinct hashes that keys collide, and parts of hashes, too.
func HashOf(key string) uint64 {
	h := uint64(len(key))
	for _, c := range []byte(key) {
		h = rng.Mix(h ^ uint64(c))
	}
	if h%4 == 0 { // the same upper half as others
		h &= 1<<34 - 1
	}
	return h &^ 7
}

// byHash orders keys as stores yield them.
func byHash(a, b string) int {
	if ha, hb := HashOf(a), HashOf(b); ha != hb {
		if ha < hb {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

// draw returns a key of a window, and the window.
func draw(r *rng.RNG) (w window.Span, key string) {
	i := int64(r.IntN(len(spans)))
	return spans[i], strings.Repeat("k", r.IntN(20)) + fmt.Sprint(r.IntN(keysMax))
}

// spans are the windows that all keys share.
var spans = []window.Span{{Start: 0, End: 1}, {Start: 1, End: 2}, {Start: 2, End: 3}, {Start: 3, End: 4}, {Start: 4, End: 5}, {Start: 5, End: 6}}

// someSpans returns some of them, in order.
func someSpans(r *rng.RNG) (some []window.Span) {
	for _, w := range spans {
		if r.IntN(2) == 0 {
			some = append(some, w)
		}
	}
	return some
}

// keyed is what windows that all keys share have to have: something for each key.
type keyed[V any] map[window.Span]map[string]V

// change changes what a key has in a window.
func (m keyed[V]) change(w window.Span, key string, by func(V) V) {
	if m[w] == nil {
		m[w] = map[string]V{}
	}
	m[w][key] = by(m[w][key])
}

// within returns what keys have in some windows together, and the keys in the order in which stores yield them.
func (m keyed[V]) within(some []window.Span, join func(a, b V) V) (want map[string]V, order []string) {
	want = map[string]V{}
	for _, w := range some {
		for key, v := range m[w] {
			want[key] = join(want[key], v)
		}
	}
	return want, slices.SortedFunc(maps.Keys(want), byHash)
}

func (m keyed[V]) clone(one func(V) V) keyed[V] {
	all := keyed[V]{}
	for w, keys := range m {
		for key, v := range keys {
			all.change(w, key, func(V) V { return one(v) })
		}
	}
	return all
}

// mayDrop checks some windows at times, and drops one.
func (m keyed[V]) mayDrop(t *testing.T, r *rng.RNG, w window.Span, check func(*testing.T, []window.Span), drop func(window.Span) error) {
	if r.IntN(6000) == 0 {
		check(t, someSpans(r))
		delete(m, w)
		must(t, drop(w))
	}
}

// dropAll drops all windows that there may be.
func dropAll(t *testing.T, drop func(window.Span) error) {
	for _, w := range spans {
		must(t, drop(w))
	}
}

type accumulators struct {
	window.AccumulatorStore
	model keyed[uint64]
}

func (s *accumulators) Step(t *testing.T, r *rng.RNG, _ int) {
	w, key := draw(r)
	acc, fresh, err := s.At(w, HashOf(key), []byte(key))
	must(t, err)
	if fresh && !bytes.Equal(acc, make([]byte, len(acc))) {
		t.Fatalf("a new value is %x", acc)
	}
	Sum(acc, one)
	s.model.change(w, key, func(n uint64) uint64 { return n + 1 })
	s.model.mayDrop(t, r, w, s.check, s.Drop)
}

func (s *accumulators) Check(t *testing.T) { s.check(t, spans) }
func (s *accumulators) Clear(t *testing.T) { dropAll(t, s.Drop) }

func (s *accumulators) check(t *testing.T, some []window.Span) {
	t.Helper()
	want, order := s.model.within(some, func(a, b uint64) uint64 { return a + b })
	i := 0
	err := s.Each(some, func(hash uint64, key, acc []byte) error {
		if i == len(order) || string(key) != order[i] || hash != HashOf(order[i]) || binary.LittleEndian.Uint64(acc) != want[order[i]] {
			return fmt.Errorf("key %d of %d: %q has %d", i, len(order), key, acc)
		}
		i++
		return nil
	})
	if err != nil || i != len(order) {
		t.Fatalf("%d keys of %d: %v", i, len(order), err)
	}
}

func (s *accumulators) Again(t *testing.T, stores window.Stores, o window.Options) Subject {
	store, err := stores.Accumulators(o, accumulatorWidth, Sum)
	must(t, err)
	return &accumulators{store, s.model.clone(func(n uint64) uint64 { return n })}
}

type lists struct {
	window.ListStore
	model keyed[[]string]
}

func (s *lists) Step(t *testing.T, r *rng.RNG, n int) {
	w, key := draw(r)
	value := strings.Repeat("v", r.IntN(30)) + fmt.Sprint(n)
	must(t, s.Append(w, HashOf(key), []byte(key), []byte(value)))
	s.model.change(w, key, func(all []string) []string { return append(all, value) })
	s.model.mayDrop(t, r, w, s.check, s.Drop)
}

func (s *lists) Check(t *testing.T) { s.check(t, spans) }
func (s *lists) Clear(t *testing.T) { dropAll(t, s.Drop) }

func (s *lists) check(t *testing.T, some []window.Span) {
	t.Helper()
	want, order := s.model.within(some, func(a, b []string) []string { return append(a, b...) })
	i := 0
	err := s.Each(some, func(hash uint64, key []byte, values window.Values) error {
		if i == len(order) || string(key) != order[i] || hash != HashOf(order[i]) || values.Len() != len(want[order[i]]) {
			return fmt.Errorf("key %d of %d: %q has %d values", i, len(order), key, values.Len())
		}
		for k, v := range want[order[i]] {
			if string(values.At(k)) != v {
				return fmt.Errorf("%q: value %d is %q, want %q", key, k, values.At(k), v)
			}
		}
		i++
		return nil
	})
	if err != nil || i != len(order) {
		t.Fatalf("%d keys of %d: %v", i, len(order), err)
	}
}

func (s *lists) Again(t *testing.T, stores window.Stores, o window.Options) Subject {
	store, err := stores.Lists(o)
	must(t, err)
	return &lists{store, s.model.clone(slices.Clone[[]string])}
}
