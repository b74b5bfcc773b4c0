package trace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/trace"
)

// digestShift makes the digests of a recording others.
var digestShift uint32

// record writes a trace of random events in batches of the given sizes.
func record(t testing.TB, seed uint64, sizes ...int) ([]byte, []metamorphic.Event) {
	t.Helper()
	l := metamorphic.New(4)
	total := 0
	for _, n := range sizes {
		total += n
	}
	events := metamorphic.Draw(rng.New(seed, 4), total, metamorphic.Shape{Keys: 5, OpsMax: 3, Tables: 3})
	var out bytes.Buffer
	h := trace.Describe(l.App)
	h.Program, h.Seed, h.Params = "list", seed, map[string]string{"keys": "5"}
	w, err := trace.NewWriter(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.State(l.App); err != nil {
		t.Fatal(err)
	}
	r := trace.NewRecorder(w, l.App, l.Events.Slice(events))
	feed := l.App.NewFeed()
	for _, n := range sizes {
		if err := r.Fill(context.Background(), feed, n); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		digests := make([]uint32, n)
		for i := range digests {
			digests[i] = uint32(i) + digestShift
		}
		if err := r.Batch(n, digests, trace.Point{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(storage.Hash{Lo: 1}, storage.Hash{Lo: 2}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), events
}

// read plays a trace into a fresh application and returns it with the sizes of
// the batches and their events as text.
func read(data []byte) (*metamorphic.List, []int, string, error) {
	l := metamorphic.New(0)
	t, err := trace.NewReader(bytes.NewReader(data), "t.trace")
	if err != nil {
		return nil, nil, "", err
	}
	defer t.Close()
	if err := t.Fits(l.App); err != nil {
		return nil, nil, "", err
	}
	if err := t.LoadState(l.App); err != nil {
		return nil, nil, "", err
	}
	var sizes []int
	var text strings.Builder
	feed := l.App.NewFeed()
	for {
		feed.Reset()
		err := t.Batch(feed)
		if errors.Is(err, io.EOF) {
			return l, sizes, text.String(), nil
		}
		if err != nil {
			return nil, nil, "", err
		}
		sizes = append(sizes, feed.Len())
		for i := range feed.Len() {
			fmt.Fprintf(&text, "%x\n", feed.AppendEvent(nil, i))
		}
	}
}

func TestRoundTrip(t *testing.T) {
	data, events := record(t, 1, 10, 1, 25)
	l, sizes, text, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(sizes) != "[10 1 25]" {
		t.Errorf("batches of %v, expected [10 1 25]", sizes)
	}
	if got, want := storage.StateHash(l.App), storage.StateHash(metamorphic.New(4).App); got != want {
		t.Errorf("state %s at the start, expected %s", got, want)
	}
	feed := l.App.NewFeed()
	want := ""
	for i, e := range events {
		l.Events.Push(feed, e)
		want += fmt.Sprintf("%x\n", feed.AppendEvent(nil, i))
	}
	if text != want {
		t.Error("the events are others")
	}
}

func TestSourceCutsBatchesAnew(t *testing.T) {
	data, _ := record(t, 2, 7, 7, 7)
	l := metamorphic.New(0)
	r, err := trace.NewReader(bytes.NewReader(data), "t.trace")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.LoadState(l.App); err != nil {
		t.Fatal(err)
	}
	source := r.Source(l.App, true)
	var sizes []int
	for {
		f := l.App.NewFeed()
		err := source.Fill(context.Background(), f, 10)
		sizes = append(sizes, f.Len())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(sizes) != "[10 10 1]" {
		t.Errorf("batches of %v, expected [10 10 1]", sizes)
	}
	if r.Footer.Events != 21 || r.Footer.Batches != 3 {
		t.Errorf("footer %+v", r.Footer)
	}
}

// Every cut and every flipped bit is noticed, with the place.
func TestDamageIsNoticed(t *testing.T) {
	data, _ := record(t, 3, 4, 4)
	for n := range data {
		_, _, _, err := read(data[:n])
		var corrupt *trace.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != "t.trace" {
			t.Fatalf("cut at %d of %d: %v", n, len(data), err)
		}
	}
	for i := range data {
		broken := bytes.Clone(data)
		broken[i] ^= 1 << (i % 8)
		if _, _, _, err := read(broken); err == nil {
			t.Fatalf("a flipped bit in byte %d goes unnoticed", i)
		}
	}
}

func TestVersionIsNamed(t *testing.T) {
	data, _ := record(t, 4, 1)
	data[7] = 9
	if _, _, _, err := read(data); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Fatalf("got %v", err)
	}
}

func FuzzReader(f *testing.F) {
	data, _ := record(f, 5, 3, 2)
	f.Add(data)
	f.Add(data[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, _, err := read(data)
		var corrupt *trace.CorruptError
		if err != nil && !errors.As(err, &corrupt) && !strings.Contains(err.Error(), "recorded with") {
			t.Fatalf("not an error of the trace: %v", err)
		}
	})
}

// A trace that was written by an earlier version is read as it was.
func TestOlderVersion(t *testing.T) {
	old, err := os.ReadFile("testdata/v1.trace")
	if err != nil {
		t.Fatal(err)
	}
	data, _ := record(t, 1, 10, 1, 25)
	l, sizes, text, err := read(old)
	if err != nil {
		t.Fatal(err)
	}
	now, sizesNow, textNow, err := read(data)
	if err != nil || text != textNow || fmt.Sprint(sizes) != fmt.Sprint(sizesNow) || storage.StateHash(l.App) != storage.StateHash(now.App) {
		t.Errorf("batches of %v, expected %v, or events or state differ, %v", sizes, sizesNow, err)
	}
}

// The first event that differs is named, and with equal events the first result.
func TestDiff(t *testing.T) {
	base, _ := record(t, 1, 10, 30)
	other, _ := record(t, 2, 40)
	cut, _ := record(t, 1, 40)
	longer, _ := record(t, 1, 10, 30, 5)
	digestShift = 7
	digests, _ := record(t, 1, 10, 30)
	digestShift = 0
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"itself", base, "<nil>"},
		{"another seed", other, "&{0 t.trace has"},
		{"a longer one", longer, "&{40 t.trace ends before it"},
		{"other results", digests, "&{0 outcome or result of"},
		{"other digests by place in another batch", cut, "&{10 outcome or result of"},
	} {
		var readers [2]*trace.Reader
		for i, data := range [][]byte{base, c.b} {
			r, err := trace.NewReader(bytes.NewReader(data), "t.trace")
			if err != nil {
				t.Fatal(err)
			}
			readers[i] = r
		}
		l := metamorphic.New(0)
		for _, r := range readers {
			if err := r.LoadState(l.App); err != nil {
				t.Fatal(err)
			}
		}
		d, err := trace.Diff(l.App, readers[0], readers[1])
		if got := fmt.Sprint(d); err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, %v; expected %s", c.name, got, err, c.want)
		}
	}
}
