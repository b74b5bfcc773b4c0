package window_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
	"github.com/heddle-stream/heddle/storage/window/windowtest"
)

func seeds() uint64 {
	if testing.Short() {
		return 1
	}
	return uint64(metamorphic.Seeds(4))
}

// Whatever memory there is, windows have what a map would have, in the order of hashes; no more memory is
// taken than there is, and all that is for little memory is made use of.
func TestStoresLikeMaps(t *testing.T) {
	fetches, hits, gathered := map[int]int64{}, int64(0), int64(0)
	windowtest.Conform(t, window.Own{}, seeds(), func(t *testing.T, k windowtest.Kind, o window.Options, s window.Store) {
		st := s.Stats()
		if st.MemoryBytesMax > max(o.Limit, window.LimitMin) || o.Limit == 0 && st.Spills == 0 && st.UserBytes > window.LimitMin {
			t.Errorf("%s: %+v, the limit is %d", k.Name, st, o.Limit)
		}
		fetches[k.Width] += st.Fetches
		hits += st.Hits
		gathered += st.Gathered
	})
	if fetches[0] < 10 || fetches[window.WidthMax] < 10 || hits < 100 || gathered < 100 {
		t.Errorf("by width %v times something was fetched, %d windows were there then, %d were gathered", fetches, hits, gathered)
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
		o := window.Options{FS: fs, Name: "w"}
		acc, lists, own := window.NewAccumulators(o, 8, windowtest.Sum), window.NewLists(o), window.NewUnaligned(o, 0, nil)
		id, _ := own.Open()
		errs := make([]error, 3)
		for i := range 100_000 {
			key := fmt.Append(nil, i)
			if errs[0] == nil {
				_, _, errs[0] = acc.At(window.Span{0, 1}, rng.Mix(uint64(i)), key)
			}
			if errs[1] == nil {
				errs[1] = lists.Append(window.Span{0, 1}, rng.Mix(uint64(i)), key, key)
			}
			if errs[2] == nil {
				errs[2] = own.Append(id, 0, []byte("some value"))
			}
		}
		for i, each := range []func() error{
			func() error {
				return acc.Each([]window.Span{{0, 1}}, func(uint64, []byte, []byte) error { return nil })
			},
			func() error {
				return lists.Each([]window.Span{{0, 1}}, func(uint64, []byte, window.Values) error { return nil })
			},
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
	huge := make([]byte, window.LimitMin)
	if _, _, err := window.NewAccumulators(window.Options{FS: &vfs.Memory{}}, 8, windowtest.Sum).At(window.Span{}, 1, huge); err == nil {
		t.Error("a key larger than a chunk")
	}
	if err := window.NewLists(window.Options{FS: &vfs.Memory{}}).Append(window.Span{}, 1, []byte("k"), huge); err == nil {
		t.Error("a value larger than a chunk")
	}
}

func BenchmarkLists(b *testing.B) {
	s := window.NewLists(window.Options{Limit: 64 << 20, FS: &vfs.Memory{}})
	key, value := make([]byte, 8), make([]byte, 64)
	n := uint64(0)
	for b.Loop() {
		binary.LittleEndian.PutUint64(key, rng.Mix(n)%100_000)
		w := window.Span{int64(n / 1_000_000), 0}
		if err := s.Append(w, rng.Mix(binary.LittleEndian.Uint64(key)), key, value); err != nil {
			b.Fatal(err)
		}
		if n++; n%1_000_000 == 0 {
			err := s.Each([]window.Span{w}, func(uint64, []byte, window.Values) error { return nil })
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
	s := window.NewAccumulators(window.Options{Limit: 64 << 20, FS: &vfs.Memory{}}, 8, windowtest.Sum)
	key := make([]byte, 8)
	n := uint64(0)
	for b.Loop() {
		binary.LittleEndian.PutUint64(key, rng.Mix(n)%100_000)
		acc, _, err := s.At(window.Span{}, rng.Mix(binary.LittleEndian.Uint64(key)), key)
		if err != nil {
			b.Fatal(err)
		}
		acc[0]++
		n++
	}
}

func BenchmarkUnaligned(b *testing.B) {
	s := window.NewUnaligned(window.Options{Limit: 64 << 20, FS: &vfs.Memory{}}, 0, nil)
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
	o := window.Options{FS: &vfs.Memory{}, Name: "w"}
	acc, lists := window.NewAccumulators(o, 8, windowtest.Sum), window.NewLists(o)
	for i := range int64(900) {
		w := window.Span{i, i + 1}
		a, _, err := acc.At(w, 1, []byte("a"))
		if err != nil {
			t.Fatalf("window %d: %v", i, err)
		}
		windowtest.Sum(a, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		if err := lists.Append(w, 1, []byte("a"), []byte("b")); err != nil {
			t.Fatalf("window %d: %v", i, err)
		}
	}
	for i := range int64(900) {
		checkOne(t, acc, window.Span{i, i + 1})
	}
	for i := range int64(2000) {
		if _, _, err := acc.At(window.Span{i, i + 1}, 1, []byte("a")); err != nil {
			if errors.Is(err, window.ErrTooMany) {
				return
			}
			t.Fatal(err)
		}
	}
	t.Error("no error whatever is open")
}

func checkOne(t *testing.T, s *window.Accumulators, w window.Span) {
	t.Helper()
	n := 0
	if err := s.Each([]window.Span{w}, func(_ uint64, key, acc []byte) error {
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
		s := window.NewAccumulators(window.Options{FS: &vfs.Memory{}, Name: "w", Limit: 4 << 20}, 8, windowtest.Sum)
		for range 2 {
			for i := range 3000 {
				acc, _, err := s.At(window.Span{0, 1}, hash, fmt.Append(nil, i))
				if err != nil {
					t.Fatal(err)
				}
				windowtest.Sum(acc, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			}
		}
		n := 0
		if err := s.Each([]window.Span{{0, 1}}, func(_ uint64, key, acc []byte) error {
			if n++; acc[0] != 2 {
				return fmt.Errorf("%q has %d", key, acc[0])
			}
			return nil
		}); err != nil || n != 3000 {
			t.Errorf("%d keys, %v", n, err)
		}
	}
}

// All windows fire at once, eight times as much as there is memory for, in an order that has nothing to do with when
// they were written: they are read twice and written once, and take hardly more of the disk meanwhile.
func TestAllAtOnce(t *testing.T) {
	const windows, rounds = 4000, 100
	o := window.Options{Limit: 4 << 20, FS: &vfs.Memory{}, Name: "w"}
	s, r := window.NewUnaligned(o, 0, nil), rng.New(1, 6)
	ids := make([]uint32, windows)
	value := make([]byte, 80)
	for i := range ids {
		ids[i], _ = s.Open()
	}
	for n := range rounds {
		for _, id := range ids {
			binary.LittleEndian.PutUint64(value, uint64(n))
			if err := s.Append(id, int64(r.IntN(1000)), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Shuffle(windows, func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	before := s.Stats()

	err := s.Each(ids, func(i int, contents []byte) error {
		n := uint64(0)
		for v := range window.Contents(contents) {
			if binary.LittleEndian.Uint64(v) != n {
				return fmt.Errorf("window %d: value %d instead of %d", i, binary.LittleEndian.Uint64(v), n)
			}
			n++
		}
		if n != rounds {
			return fmt.Errorf("window %d has %d values", i, n)
		}
		return nil
	})
	if err == nil {
		err = s.Drop(ids)
	}
	if err != nil {
		t.Fatal(err)
	}
	st, contents := s.Stats(), before.DiskBytes
	if st.Gathered != windows || st.Misses != before.Misses || st.Hits != before.Hits {
		t.Errorf("%+v", st)
	}
	read, written := st.ReadBytes-before.ReadBytes, st.WrittenBytes-before.WrittenBytes
	if st.DiskRowsMax < contents*9/10 || st.DiskRowsMax > st.DiskBytesMax {
		t.Errorf("of %d bytes of files %d are rows", st.DiskBytesMax, st.DiskRowsMax)
	}
	if contents < 7*o.Limit || read > 2*contents || written > contents || st.DiskBytesMax > contents*5/4 || st.DiskBytes > o.Limit {
		t.Errorf("of %d bytes on disk %d were read and %d written, %d were there at most, %d are left", contents, read, written, st.DiskBytesMax, st.DiskBytes)
	}
}
