package window

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// hashOf makes few enough distinct hashes that keys collide, and tags, too.
func hashOf(key string) uint64 {
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
	if ha, hb := hashOf(a), hashOf(b); ha != hb {
		if ha < hb {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

func drawKey(r *rng.RNG, keys int) string {
	return strings.Repeat("k", r.IntN(20)) + fmt.Sprint(r.IntN(keys))
}

func seeds() int {
	if testing.Short() {
		return 3
	}
	return 12
}

func sum(into, from []byte) {
	binary.LittleEndian.PutUint64(into, binary.LittleEndian.Uint64(into)+binary.LittleEndian.Uint64(from))
}

func limits(r *rng.RNG) Options {
	limit := []int64{0, 2 * LimitMin, 64 << 20}[r.IntN(3)]
	return Options{Limit: limit, FS: &vfs.Memory{}, Name: "w"}
}

// drawSpans returns some of the windows, in order, with some that are not there.
func drawSpans(r *rng.RNG) (spans []Span) {
	for i := range int64(6) {
		if r.IntN(2) == 0 {
			spans = append(spans, Span{i, i + 1})
		}
	}
	return spans
}

// Whatever memory there is, windows have what a map would have, in the order of hashes.
func TestAccumulatorsLikeAMap(t *testing.T) {
	for seed := range uint64(seeds()) {
		r := rng.New(seed, 1)
		o := limits(r)
		s := NewAccumulators(o, 16, sum)
		model := map[Span]map[string]uint64{}
		keys := []int{10, 3000, 40_000}[r.IntN(3)]
		for range 60_000 {
			i := int64(r.IntN(6))
			w, key := Span{i, i + 1}, drawKey(r, keys)
			acc, fresh, err := s.At(w, hashOf(key), []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			if fresh && !bytes.Equal(acc, make([]byte, 16)) {
				t.Fatalf("a new value is %x", acc)
			}
			sum(acc, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			if model[w] == nil {
				model[w] = map[string]uint64{}
			}
			model[w][key]++
			if r.IntN(15_000) == 0 {
				checkAccumulators(t, s, model, drawSpans(r))
				if err := s.Drop(w); err != nil {
					t.Fatal(err)
				}
				delete(model, w)
			}
		}
		checkAccumulators(t, s, model, []Span{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}})
		st := s.Stats()
		if st.MemoryBytesMax > max(o.Limit, LimitMin) {
			t.Errorf("seed %d: %d bytes of memory, the limit is %d", seed, st.MemoryBytesMax, o.Limit)
		}
		if o.Limit == 0 && keys == 40_000 && st.Spills == 0 {
			t.Errorf("seed %d: nothing went to disk", seed)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func checkAccumulators(t *testing.T, s *Accumulators, model map[Span]map[string]uint64, spans []Span) {
	t.Helper()
	want := map[string]uint64{}
	for _, w := range spans {
		for key, n := range model[w] {
			want[key] += n
		}
	}
	order := slices.SortedFunc(maps.Keys(want), byHash)
	i := 0
	err := s.Each(spans, func(hash uint64, key, acc []byte) error {
		if i == len(order) || string(key) != order[i] || hash != hashOf(order[i]) || binary.LittleEndian.Uint64(acc) != want[order[i]] {
			return fmt.Errorf("key %d of %d: %q has %d", i, len(order), key, acc)
		}
		i++
		return nil
	})
	if err != nil || i != len(order) {
		t.Fatalf("%d keys of %d: %v", i, len(order), err)
	}
}

func TestListsLikeAMap(t *testing.T) {
	for seed := range uint64(seeds()) {
		r := rng.New(seed, 2)
		o := limits(r)
		s := NewLists(o)
		model := map[Span]map[string][]string{}
		keys := []int{10, 3000, 40_000}[r.IntN(3)]
		for n := range 60_000 {
			i := int64(r.IntN(6))
			w, key, value := Span{i, i + 1}, drawKey(r, keys), strings.Repeat("v", r.IntN(30))+fmt.Sprint(n)
			if err := s.Append(w, hashOf(key), []byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
			if model[w] == nil {
				model[w] = map[string][]string{}
			}
			model[w][key] = append(model[w][key], value)
			if r.IntN(15_000) == 0 {
				checkLists(t, s, model, drawSpans(r))
				if err := s.Drop(w); err != nil {
					t.Fatal(err)
				}
				delete(model, w)
			}
		}
		checkLists(t, s, model, []Span{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}})
		st := s.Stats()
		if st.MemoryBytesMax > max(o.Limit, LimitMin) || o.Limit == 0 && st.Spills == 0 {
			t.Errorf("seed %d: %+v, the limit is %d", seed, st, o.Limit)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func checkLists(t *testing.T, s *Lists, model map[Span]map[string][]string, spans []Span) {
	t.Helper()
	want := map[string][]string{}
	for _, w := range spans {
		for key, values := range model[w] {
			want[key] = append(want[key], values...)
		}
	}
	order := slices.SortedFunc(maps.Keys(want), byHash)
	i := 0
	err := s.Each(spans, func(hash uint64, key []byte, values Values) error {
		if i == len(order) || string(key) != order[i] || hash != hashOf(order[i]) || values.Len() != len(want[order[i]]) {
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

// Windows of keys grow, merge and go, with values appended and with one that is changed.
func TestUnalignedLikeSlices(t *testing.T) {
	fetches, hits := map[int]int64{}, int64(0)
	for seed := range uint64(3 * seeds()) {
		r := rng.New(seed, 3)
		o := limits(r)
		o.Limit = []int64{0, 2 * LimitMin, 64 << 20}[seed%3]
		width, opens := []int{0, 16, WidthMax}[seed/3%3], 12
		if width > 0 {
			opens = 2 // values that are changed do not grow
		}
		s := NewUnaligned(o, width, sum)
		model := map[uint32][]string{}
		for n := range 30_000 {
			if len(model) == 0 || r.IntN(opens) == 0 {
				id, err := s.Open()
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := model[id]; ok {
					t.Fatalf("window %d is open already", id)
				}
				model[id] = nil
			}
			ids := slices.Sorted(maps.Keys(model))
			id := ids[r.IntN(len(ids))]
			value := strings.Repeat("v", r.IntN(400)) + fmt.Sprint(n)
			if width == 0 {
				if err := s.Append(id, int64(r.IntN(100)), []byte(value)); err != nil {
					t.Fatal(err)
				}
			} else {
				acc, fresh, err := s.At(id, int64(r.IntN(100)))
				if err != nil || fresh && !bytes.Equal(acc, make([]byte, width)) {
					t.Fatalf("%x, %v", acc, err)
				}
				sum(acc, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			}
			model[id] = append(model[id], value)
			if len(ids) > 300 || r.IntN(100) == 0 {
				mergeOrDrop(t, r, s, width, model, ids)
			}
		}
		ids := slices.Sorted(maps.Keys(model))
		checkUnaligned(t, s, width, model, ids)
		st := s.Stats()
		if st.MemoryBytesMax > max(o.Limit, LimitMin) {
			t.Errorf("seed %d: %+v, the limit is %d", seed, st, o.Limit)
		}
		fetches[width] += st.Fetches
		hits += st.Hits
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if fetches[0] < 10 || fetches[WidthMax] < 10 || hits < 100 {
		t.Errorf("by width %v times something was fetched, %d windows were there then", fetches, hits)
	}
}

func mergeOrDrop(t *testing.T, r *rng.RNG, s *Unaligned, width int, model map[uint32][]string, ids []uint32) {
	t.Helper()
	a, b := ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]
	if a != b && r.IntN(2) == 0 {
		if err := s.Merge(a, b); err != nil {
			t.Fatal(err)
		}
		model[a] = append(model[a], model[b]...)
		delete(model, b)
		return
	}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	gone := ids[:r.IntN(1+len(ids)/2)]
	checkUnaligned(t, s, width, model, gone)
	if err := s.Drop(gone); err != nil {
		t.Fatal(err)
	}
	for _, id := range gone {
		delete(model, id)
	}
}

func checkUnaligned(t *testing.T, s *Unaligned, width int, model map[uint32][]string, ids []uint32) {
	t.Helper()
	seen := 0
	err := s.Each(ids, func(i int, contents []byte) error {
		seen++
		want := model[ids[i]]
		if width > 0 {
			if len(want) > 0 && binary.LittleEndian.Uint64(contents) != uint64(len(want)) {
				return fmt.Errorf("window %d: %x, want %d", ids[i], contents, len(want))
			}
			return nil
		}
		k := 0
		for value := range Contents(contents) {
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

// flipping is a disk that gives back one bit wrongly.
type flipping struct{ vfs.FS }

type flippingFile struct{ vfs.File }

func (f flipping) Create(name string) (vfs.File, error) {
	file, err := f.FS.Create(name)
	return flippingFile{file}, err
}

func (f flippingFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if n > 20 {
		p[n/2] ^= 4
	}
	return n, err
}

// What the disk gives back wrongly is an error that names the file, and so is a full disk.
func TestDamageIsAnError(t *testing.T) {
	full := vfs.NewFaulty(&vfs.Memory{})
	full.SetSpace(1 << 20)
	for _, fs := range []vfs.FS{flipping{&vfs.Memory{}}, full} {
		o := Options{FS: fs, Name: "w"}
		acc, lists, own := NewAccumulators(o, 8, sum), NewLists(o), NewUnaligned(o, 0, nil)
		id, _ := own.Open()
		errs := make([]error, 3)
		for i := range 100_000 {
			key := fmt.Append(nil, i)
			if errs[0] == nil {
				_, _, errs[0] = acc.At(Span{0, 1}, rng.Mix(uint64(i)), key)
			}
			if errs[1] == nil {
				errs[1] = lists.Append(Span{0, 1}, rng.Mix(uint64(i)), key, key)
			}
			if errs[2] == nil {
				errs[2] = own.Append(id, 0, []byte("some value"))
			}
		}
		for i, each := range []func() error{
			func() error { return acc.Each([]Span{{0, 1}}, func(uint64, []byte, []byte) error { return nil }) },
			func() error { return lists.Each([]Span{{0, 1}}, func(uint64, []byte, Values) error { return nil }) },
			func() error { return own.Each([]uint32{id}, func(int, []byte) error { return nil }) },
		} {
			if errs[i] == nil {
				errs[i] = each()
			}
			if errs[i] == nil || !strings.Contains(errs[i].Error(), "w-") {
				t.Errorf("store %d: %v", i, errs[i])
			}
		}
	}
}

func TestKeysThatAreTooLarge(t *testing.T) {
	huge := make([]byte, 2*chunkSize)
	if _, _, err := NewAccumulators(Options{FS: &vfs.Memory{}}, 8, sum).At(Span{}, 1, huge); err == nil {
		t.Error("a key larger than a chunk")
	}
	if err := NewLists(Options{FS: &vfs.Memory{}}).Append(Span{}, 1, []byte("k"), huge); err == nil {
		t.Error("a value larger than a chunk")
	}
}

func BenchmarkLists(b *testing.B) {
	s := NewLists(Options{Limit: 64 << 20, FS: &vfs.Memory{}})
	key, value := make([]byte, 8), make([]byte, 64)
	n := uint64(0)
	for b.Loop() {
		binary.LittleEndian.PutUint64(key, rng.Mix(n)%100_000)
		w := Span{int64(n / 1_000_000), 0}
		if err := s.Append(w, rng.Mix(binary.LittleEndian.Uint64(key)), key, value); err != nil {
			b.Fatal(err)
		}
		if n++; n%1_000_000 == 0 {
			err := s.Each([]Span{w}, func(uint64, []byte, Values) error { return nil })
			if err == nil {
				err = s.Drop(w)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkAccumulators(b *testing.B) {
	s := NewAccumulators(Options{Limit: 64 << 20, FS: &vfs.Memory{}}, 8, sum)
	key := make([]byte, 8)
	n := uint64(0)
	for b.Loop() {
		binary.LittleEndian.PutUint64(key, rng.Mix(n)%100_000)
		acc, _, err := s.At(Span{}, rng.Mix(binary.LittleEndian.Uint64(key)), key)
		if err != nil {
			b.Fatal(err)
		}
		acc[0]++
		n++
	}
}

func BenchmarkUnaligned(b *testing.B) {
	s := NewUnaligned(Options{Limit: 64 << 20, FS: &vfs.Memory{}}, 0, nil)
	value := make([]byte, 64)
	ids := make([]uint32, 1000)
	for i := range ids {
		ids[i], _ = s.Open()
	}
	n := 0
	for b.Loop() {
		i := n % len(ids)
		if err := s.Append(ids[i], int64(n), value); err != nil {
			b.Fatal(err)
		}
		if n++; n%(50*len(ids)) == 0 {
			err := s.Each(ids, func(int, []byte) error { return nil })
			if err == nil {
				err = s.Drop(ids)
			}
			if err != nil {
				b.Fatal(err)
			}
			for i := range ids {
				ids[i], _ = s.Open()
			}
		}
	}
}

// Very many windows with next to nothing in them, in as little memory as there may be.
func TestManyWindows(t *testing.T) {
	o := Options{FS: &vfs.Memory{}, Name: "w"}
	acc, lists := NewAccumulators(o, 8, sum), NewLists(o)
	for i := range int64(900) {
		w := Span{i, i + 1}
		a, _, err := acc.At(w, 1, []byte("a"))
		if err != nil {
			t.Fatalf("window %d: %v", i, err)
		}
		sum(a, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		if err := lists.Append(w, 1, []byte("a"), []byte("b")); err != nil {
			t.Fatalf("window %d: %v", i, err)
		}
	}
	for i := range int64(900) {
		checkOne(t, acc, Span{i, i + 1})
	}
	for i := range int64(2000) {
		if _, _, err := acc.At(Span{i, i + 1}, 1, []byte("a")); err != nil {
			if strings.Contains(err.Error(), "windows are open") {
				return
			}
			t.Fatal(err)
		}
	}
	t.Error("no error whatever is open")
}

func checkOne(t *testing.T, s *Accumulators, w Span) {
	t.Helper()
	n := 0
	if err := s.Each([]Span{w}, func(_ uint64, key, acc []byte) error {
		if n++; string(key) != "a" || acc[0] != 1 {
			return fmt.Errorf("%q has %x", key, acc)
		}
		return nil
	}); err != nil || n != 1 {
		t.Fatalf("%v: %d keys, %v", w, n, err)
	}
}

// Keys whose hashes are all the same, or the largest ones.
func TestHashesThatCrowd(t *testing.T) {
	for _, hash := range []uint64{0, 1<<64 - 1, 1 << 63} {
		s := NewAccumulators(Options{FS: &vfs.Memory{}, Name: "w", Limit: 4 << 20}, 8, sum)
		for range 2 {
			for i := range 3000 {
				acc, _, err := s.At(Span{0, 1}, hash, fmt.Append(nil, i))
				if err != nil {
					t.Fatal(err)
				}
				sum(acc, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			}
		}
		n := 0
		if err := s.Each([]Span{{0, 1}}, func(_ uint64, key, acc []byte) error {
			if n++; acc[0] != 2 {
				return fmt.Errorf("%q has %d", key, acc[0])
			}
			return nil
		}); err != nil || n != 3000 {
			t.Errorf("%d keys, %v", n, err)
		}
	}
}
