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

type unaligned struct {
	window.UnalignedStore
	width int
	model map[uint32][]string
}

// openMax is how many windows of one key are open at once.
const openMax = 300

func (s *unaligned) Step(t *testing.T, r *rng.RNG, n int) {
	opens := 12
	if s.width > 0 {
		opens = 2 // values that are changed do not grow
	}
	if len(s.model) == 0 || r.IntN(opens) == 0 {
		id, err := s.Open()
		must(t, err)
		if _, ok := s.model[id]; ok {
			t.Fatalf("window %d is open already", id)
		}
		s.model[id] = nil
	}
	ids := slices.Sorted(maps.Keys(s.model))
	id := ids[r.IntN(len(ids))]
	value, expected := strings.Repeat("v", r.IntN(400))+fmt.Sprint(n), int64(r.IntN(100))
	if s.width == 0 {
		must(t, s.Append(id, expected, []byte(value)))
	} else {
		acc, fresh, err := s.At(id, expected)
		must(t, err)
		if fresh && !bytes.Equal(acc, make([]byte, s.width)) {
			t.Fatalf("a new value is %x", acc)
		}
		Sum(acc, one)
	}
	s.model[id] = append(s.model[id], value)
	if len(ids) > openMax || r.IntN(100) == 0 {
		s.mergeOrDrop(t, r, ids)
	}
}

func (s *unaligned) mergeOrDrop(t *testing.T, r *rng.RNG, ids []uint32) {
	t.Helper()
	a, b := ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]
	if a != b && r.IntN(2) == 0 {
		must(t, s.Merge(a, b))
		s.model[a] = append(s.model[a], s.model[b]...)
		delete(s.model, b)
		return
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	gone := ids[:r.IntN(1+len(ids)/2)]
	s.check(t, gone)
	must(t, s.Drop(gone))
	for _, id := range gone {
		delete(s.model, id)
	}
}

func (s *unaligned) Check(t *testing.T) { s.check(t, slices.Sorted(maps.Keys(s.model))) }

func (s *unaligned) Clear(t *testing.T) { must(t, s.Drop(slices.Sorted(maps.Keys(s.model)))) }

func (s *unaligned) check(t *testing.T, ids []uint32) {
	t.Helper()
	seen := 0
	err := s.Each(ids, func(i int, contents []byte) error {
		seen++
		want := s.model[ids[i]]
		if s.width > 0 {
			if len(want) > 0 && binary.LittleEndian.Uint64(contents) != uint64(len(want)) {
				return fmt.Errorf("window %d: %x, want %d", ids[i], contents, len(want))
			}
			return nil
		}
		k := 0
		for value := range window.Contents(contents) {
			if k == len(want) || string(value) != want[k] {
				return fmt.Errorf("window %d: value %d is %q, of %d", ids[i], k, value, len(want))
			}
			k++
		}
		if k != len(want) {
			return fmt.Errorf("window %d: %d values, want %d", ids[i], k, len(want))
		}
		return nil
	})
	if err != nil || seen != len(ids) {
		t.Fatalf("%d of %d: %v", seen, len(ids), err)
	}
}

func (s *unaligned) Again(t *testing.T, stores window.Stores, o window.Options) Subject {
	model := map[uint32][]string{}
	for id, values := range s.model {
		model[id] = slices.Clone(values)
	}
	store, err := stores.Unaligned(o, s.width, Sum)
	must(t, err)
	return &unaligned{store, s.width, model}
}
