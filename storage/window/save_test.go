package window_test

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
	"github.com/heddle-stream/heddle/storage/window/windowtest"
)

// items collects what a store saves, and hands it out.
type items struct {
	all  [][]byte
	next int
}

func (x *items) add(item []byte) { x.all = append(x.all, slices.Clone(item)) }

func (x *items) read() ([]byte, error) {
	if x.next == len(x.all) {
		return nil, io.EOF
	}
	x.next++
	return x.all[x.next-1], nil
}

// A store that was saved comes back after a crash, whatever happened since: with other limits, after
// files were given up, and again and again.
func TestStoresSurvive(t *testing.T) {
	for _, k := range windowtest.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			for seed := range 3 * seeds() {
				surviving(t, rng.New(seed, 4), k)
			}
		})
	}
}

func surviving(t *testing.T, r *rng.RNG, k windowtest.Kind) {
	t.Helper()
	fs := vfs.NewCrashable()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	o := func() window.Options {
		return window.Options{Limit: windowtest.Limits[r.IntN(len(windowtest.Limits))], FS: fs, Name: "d/w", Keep: true}
	}
	live := k.Empty(t, window.Own{}, o())
	kept, image := live.Again(t, window.Own{}, o()), &items{}
	if err := kept.Save(image.add); err != nil {
		t.Fatal(err)
	}
	save := func() {
		image = &items{}
		if err := errors.Join(live.Save(image.add), fs.SyncDir("d")); err != nil {
			t.Fatal(err)
		}
		kept = live.Again(t, window.Own{}, o())
		if r.IntN(3) > 0 { // or it dies before that
			if err := live.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 20_000 {
		live.Step(t, r, n)
		switch r.IntN(4000) {
		case 0:
			save()
		case 1:
			fs.Crash(r)
			live = kept.Again(t, window.Own{}, o())
			image.next = 0
			if err := live.Load(image.read); err != nil {
				t.Fatal(err)
			}
			live.Check(t)
		}
	}
	live.Check(t)
	save()
	if err := errors.Join(live.Release(), live.Close()); err != nil {
		t.Fatal(err)
	}
	live = kept.Again(t, window.Own{}, o())
	if err := live.Load(image.read); err != nil {
		t.Fatal(err)
	}
	live.Check(t)
}

// What was not saved by a store is an error.
func TestStoresRefuseOtherItems(t *testing.T) {
	fs := &vfs.Memory{}
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	o := window.Options{FS: fs, Name: "d/w", Keep: true}
	for _, k := range windowtest.Kinds() {
		if k.Name == "unaligned 0" { // its contents are any bytes
			continue
		}
		empty := func() window.Store { return k.Empty(t, window.Own{}, o) }
		live, image, r := k.Empty(t, window.Own{}, o), &items{}, rng.New(1, 5)
		for n := range 3000 {
			live.Step(t, r, n)
		}
		if err := live.Save(image.add); err != nil {
			t.Fatal(err)
		}
		for i := range image.all {
			if i > 40 {
				break
			}
			cut := &items{all: slices.Clone(image.all)}
			cut.all[i] = cut.all[i][:len(cut.all[i])/2]
			if err := empty().Load(cut.read); err == nil {
				t.Errorf("%s: half of item %d of %d was read", k.Name, i, len(image.all))
			}
		}
		if err := empty().Load((&items{}).read); err == nil {
			t.Errorf("%s: nothing was read", k.Name)
		}
	}
}

// Whatever comes instead of what was saved, stores are not hurt by it.
func FuzzLoad(f *testing.F) {
	fs := &vfs.Memory{}
	if err := fs.MkdirAll("d"); err != nil {
		f.Fatal(err)
	}
	o := window.Options{FS: fs, Name: "d/w", Keep: true}
	kinds := windowtest.Kinds()
	for kind, k := range kinds {
		image := &items{}
		if err := k.Empty(f, window.Own{}, o).Save(image.add); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(kind), image.all[0], []byte{2, 1, 2}, []byte{0, 2, 2, 2})
	}
	f.Fuzz(func(t *testing.T, kind byte, a, b, c []byte) {
		s := kinds[int(kind)%len(kinds)].Empty(t, window.Own{}, o)
		image := &items{all: [][]byte{a, b, c, c}}
		if err := s.Load(image.read); err != nil {
			return
		}
		if err := s.Save((&items{}).add); err != nil {
			t.Fatal(err)
		}
	})
}
