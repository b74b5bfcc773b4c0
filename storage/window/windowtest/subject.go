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

// keysMax is how many keys there are in windows that all keys share.
const keysMax = 5000

// Kinds returns what stores there are.
func Kinds() []Kind {
	all := []Kind{
		{"accumulators", 16, func(t testing.TB, stores window.Stores, o window.Options) Subject {
			s, err := stores.Accumulators(o, 16, Sum)
			must(t, err)
			return &accumulators{s, keysMax, map[window.Span]map[string]uint64{}}
		}},
		{"lists", 0, func(t testing.TB, stores window.Stores, o window.Options) Subject {
			s, err := stores.Lists(o)
			must(t, err)
			return &lists{s, keysMax, map[window.Span]map[string][]string{}}
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
func draw(r *rng.RNG, keys int) (w window.Span, key string) {
	i := int64(r.IntN(len(spans)))
	return spans[i], strings.Repeat("k", r.IntN(20)) + fmt.Sprint(r.IntN(keys))
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

type accumulators struct {
	window.AccumulatorStore
	keys  int
	model map[window.Span]map[string]uint64
}

func (s *accumulators) Step(t *testing.T, r *rng.RNG, _ int) {
	w, key := draw(r, s.keys)
	acc, fresh, err := s.At(w, HashOf(key), []byte(key))
	must(t, err)
	if fresh && !bytes.Equal(acc, make([]byte, len(acc))) {
		t.Fatalf("a new value is %x", acc)
	}
	Sum(acc, one)
	if s.model[w] == nil {
		s.model[w] = map[string]uint64{}
	}
	s.model[w][key]++
	if r.IntN(6000) == 0 {
		s.check(t, someSpans(r))
		delete(s.model, w)
		must(t, s.Drop(w))
	}
}

func (s *accumulators) Check(t *testing.T) { s.check(t, spans) }
func (s *accumulators) Clear(t *testing.T) {
	for _, w := range spans {
		must(t, s.Drop(w))
	}
}

func (s *accumulators) check(t *testing.T, some []window.Span) {
	t.Helper()
	want := map[string]uint64{}
	for _, w := range some {
		for key, n := range s.model[w] {
			want[key] += n
		}
	}
	order := slices.SortedFunc(maps.Keys(want), byHash)
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
	model := map[window.Span]map[string]uint64{}
	for w, keys := range s.model {
		model[w] = maps.Clone(keys)
	}
	store, err := stores.Accumulators(o, 16, Sum)
	must(t, err)
	return &accumulators{store, s.keys, model}
}

type lists struct {
	window.ListStore
	keys  int
	model map[window.Span]map[string][]string
}

func (s *lists) Step(t *testing.T, r *rng.RNG, n int) {
	w, key := draw(r, s.keys)
	value := strings.Repeat("v", r.IntN(30)) + fmt.Sprint(n)
	must(t, s.Append(w, HashOf(key), []byte(key), []byte(value)))
	if s.model[w] == nil {
		s.model[w] = map[string][]string{}
	}
	s.model[w][key] = append(s.model[w][key], value)
	if r.IntN(6000) == 0 {
		s.check(t, someSpans(r))
		delete(s.model, w)
		must(t, s.Drop(w))
	}
}

func (s *lists) Check(t *testing.T) { s.check(t, spans) }
func (s *lists) Clear(t *testing.T) {
	for _, w := range spans {
		must(t, s.Drop(w))
	}
}

func (s *lists) check(t *testing.T, some []window.Span) {
	t.Helper()
	want := map[string][]string{}
	for _, w := range some {
		for key, values := range s.model[w] {
			want[key] = append(want[key], values...)
		}
	}
	order := slices.SortedFunc(maps.Keys(want), byHash)
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
	model := map[window.Span]map[string][]string{}
	for w, keys := range s.model {
		model[w] = map[string][]string{}
		for key, values := range keys {
			model[w][key] = slices.Clone(values)
		}
	}
	store, err := stores.Lists(o)
	must(t, err)
	return &lists{store, s.keys, model}
}
