package window

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// saved is what stores have in common that are kept.
type saved interface {
	Save(add func(item []byte)) error
	Load(next func() ([]byte, error)) error
	Release() error
	Stats() Stats
	Close() error
}

// subject is a store with its model.
type subject interface {
	saved
	// step does something at random to both.
	step(t *testing.T, r *rng.RNG, n int)
	check(t *testing.T)
	// again returns a new store with a copy of the model.
	again(o Options) subject
}

type accSubject struct {
	*Accumulators
	model map[Span]map[string]uint64
}

func (s *accSubject) step(t *testing.T, r *rng.RNG, _ int) {
	i := int64(r.IntN(6))
	w, key := Span{i, i + 1}, drawKey(r, 5000)
	acc, _, err := s.At(w, hashOf(key), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	sum(acc, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	if s.model[w] == nil {
		s.model[w] = map[string]uint64{}
	}
	s.model[w][key]++
	if r.IntN(6000) == 0 {
		delete(s.model, w)
		if err := s.Drop(w); err != nil {
			t.Fatal(err)
		}
	}
}

var sixSpans = []Span{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}}

func (s *accSubject) check(t *testing.T) { checkAccumulators(t, s.Accumulators, s.model, sixSpans) }
func (s *accSubject) again(o Options) subject {
	model := map[Span]map[string]uint64{}
	for w, keys := range s.model {
		model[w] = maps.Clone(keys)
	}
	return &accSubject{NewAccumulators(o, 16, sum), model}
}

type listSubject struct {
	*Lists
	model map[Span]map[string][]string
}

func (s *listSubject) step(t *testing.T, r *rng.RNG, n int) {
	i := int64(r.IntN(6))
	w, key, value := Span{i, i + 1}, drawKey(r, 5000), strings.Repeat("v", r.IntN(30))+fmt.Sprint(n)
	if err := s.Append(w, hashOf(key), []byte(key), []byte(value)); err != nil {
		t.Fatal(err)
	}
	if s.model[w] == nil {
		s.model[w] = map[string][]string{}
	}
	s.model[w][key] = append(s.model[w][key], value)
	if r.IntN(6000) == 0 {
		delete(s.model, w)
		if err := s.Drop(w); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *listSubject) check(t *testing.T) { checkLists(t, s.Lists, s.model, sixSpans) }
func (s *listSubject) again(o Options) subject {
	model := map[Span]map[string][]string{}
	for w, keys := range s.model {
		model[w] = map[string][]string{}
		for key, values := range keys {
			model[w][key] = slices.Clone(values)
		}
	}
	return &listSubject{NewLists(o), model}
}

type ownSubject struct {
	*Unaligned
	model map[uint32][]string
}

func (s *ownSubject) step(t *testing.T, r *rng.RNG, n int) {
	var id uint32
	var err error
	if len(s.model) < 400 && (len(s.model) == 0 || r.IntN(12) == 0) {
		if id, err = s.Open(); err != nil {
			t.Fatal(err)
		}
		s.model[id] = nil
	} else {
		ids := slices.Sorted(maps.Keys(s.model))
		id = ids[r.IntN(len(ids))]
	}
	value := strings.Repeat("v", r.IntN(300)) + fmt.Sprint(n)
	if s.width == 0 {
		err = s.Append(id, int64(r.IntN(100)), []byte(value))
	} else {
		var acc []byte
		if acc, _, err = s.At(id, int64(r.IntN(100))); err == nil {
			sum(acc, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	s.model[id] = append(s.model[id], value)
	if r.IntN(200) == 0 {
		mergeOrDrop(t, r, s.Unaligned, s.width, s.model, slices.Sorted(maps.Keys(s.model)))
	}
}

func (s *ownSubject) check(t *testing.T) {
	checkUnaligned(t, s.Unaligned, s.width, s.model, slices.Sorted(maps.Keys(s.model)))
}

func (s *ownSubject) again(o Options) subject {
	model := map[uint32][]string{}
	for id, values := range s.model {
		model[id] = slices.Clone(values)
	}
	return &ownSubject{NewUnaligned(o, s.width, sum), model}
}

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
	for name, empty := range map[string]func(Options) subject{
		"accumulators": func(o Options) subject {
			return &accSubject{NewAccumulators(o, 16, sum), map[Span]map[string]uint64{}}
		},
		"lists": func(o Options) subject { return &listSubject{NewLists(o), map[Span]map[string][]string{}} },
		"own":   func(o Options) subject { return &ownSubject{NewUnaligned(o, 0, sum), map[uint32][]string{}} },
		"own values": func(o Options) subject {
			return &ownSubject{NewUnaligned(o, 8, sum), map[uint32][]string{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds()) {
				surviving(t, rng.New(seed, 4), empty)
			}
		})
	}
}

func surviving(t *testing.T, r *rng.RNG, empty func(Options) subject) {
	t.Helper()
	fs := vfs.NewCrashable()
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	o := func() Options {
		o := limits(r)
		o.FS, o.Name, o.Keep = fs, "d/w", true
		return o
	}
	live := empty(o())
	kept, image := live.again(o()), &items{}
	if err := kept.Save(image.add); err != nil {
		t.Fatal(err)
	}
	save := func() {
		image = &items{}
		if err := errors.Join(live.Save(image.add), fs.SyncDir("d")); err != nil {
			t.Fatal(err)
		}
		kept = live.again(o())
		if r.IntN(3) > 0 { // or it dies before that
			if err := live.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 20_000 {
		live.step(t, r, n)
		switch r.IntN(4000) {
		case 0:
			save()
		case 1:
			fs.Crash(r)
			live = kept.again(o())
			image.next = 0
			if err := live.Load(image.read); err != nil {
				t.Fatal(err)
			}
			live.check(t)
		}
	}
	live.check(t)
	save()
	if err := errors.Join(live.Release(), live.Close()); err != nil {
		t.Fatal(err)
	}
	live = kept.again(o())
	if err := live.Load(image.read); err != nil {
		t.Fatal(err)
	}
	live.check(t)
}

// What was not saved by a store is an error.
func TestStoresRefuseOtherItems(t *testing.T) {
	fs := &vfs.Memory{}
	if err := fs.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	o := Options{FS: fs, Name: "d/w", Keep: true}
	for name, empty := range map[string]func() subject{
		"accumulators": func() subject {
			return &accSubject{NewAccumulators(o, 16, sum), map[Span]map[string]uint64{}}
		},
		"lists": func() subject { return &listSubject{NewLists(o), map[Span]map[string][]string{}} },
		"own":   func() subject { return &ownSubject{NewUnaligned(o, 8, sum), map[uint32][]string{}} },
	} {
		live, image, r := empty(), &items{}, rng.New(1, 5)
		for n := range 3000 {
			live.step(t, r, n)
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
				t.Errorf("%s: half of item %d of %d was read", name, i, len(image.all))
			}
		}
		if err := empty().Load((&items{}).read); err == nil {
			t.Errorf("%s: nothing was read", name)
		}
	}
}

// Whatever comes instead of what was saved, stores are not hurt by it.
func FuzzLoad(f *testing.F) {
	fs := &vfs.Memory{}
	if err := fs.MkdirAll("d"); err != nil {
		f.Fatal(err)
	}
	o := Options{FS: fs, Name: "d/w", Keep: true}
	stores := []func() subject{
		func() subject { return &accSubject{NewAccumulators(o, 16, sum), map[Span]map[string]uint64{}} },
		func() subject { return &listSubject{NewLists(o), map[Span]map[string][]string{}} },
		func() subject { return &ownSubject{NewUnaligned(o, 8, sum), map[uint32][]string{}} },
		func() subject { return &ownSubject{NewUnaligned(o, 0, nil), map[uint32][]string{}} },
	}
	for kind, empty := range stores {
		image := &items{}
		if err := empty().Save(image.add); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(kind), image.all[0], []byte{2, 1, 2}, []byte{0, 2, 2, 2})
	}
	f.Fuzz(func(t *testing.T, kind byte, a, b, c []byte) {
		s := stores[int(kind)%len(stores)]()
		image := &items{all: [][]byte{a, b, c, c}}
		if err := s.Load(image.read); err != nil {
			return
		}
		if err := s.Save((&items{}).add); err != nil {
			t.Fatal(err)
		}
	})
}
