package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
	"github.com/heddle-stream/heddle/workloads/nexmark"
)

// WindowStore is a store of windows as the experiment flowkv uses it: one of three ways, each
// with a store of its own. Others than Heddle's are in bench/peers.
type WindowStore interface {
	// Append adds a value to a key in a window; of windows of one key, with when it is
	// expected to be read.
	Append(w, key uint64, expected int64, value []byte) error
	// Add adds to the number that a key has in a window.
	Add(w, key uint64, n uint64) error
	// Fire yields what some windows have, and forgets it: of lists each value, of numbers
	// each key's.
	Fire(ws []uint64, yield func(value []byte)) error
	// Written returns the bytes that went to disk so far.
	Written() int64
	Close() error
}

// OpenStore makes a store for a way to use it, with files in a directory and so many bytes of
// memory.
type OpenStore func(way Way, dir string, limit int64) (WindowStore, error)

// Way is how windows are written and read.
type Way string

// The ways: windows of all keys, of one key each, and numbers that are changed.
const (
	WayAligned   Way = "aligned"
	WayUnaligned Way = "unaligned"
	WayRMW       Way = "rmw"
)

// flowTrace is what is done to a store: a list of steps, the same for each.
type flowTrace struct {
	name  string
	way   Way
	limit int64
	steps []flowStep
	fires []uint64
	// What all fires have to yield together.
	values, sum uint64
}

// flowStep adds to a window; with fire > 0 so many of fires are read after it.
type flowStep struct {
	w, key   uint64
	expected int64
	fire     int
}

const flowValue = 80 // bytes of a value; the first eight are its number

// flowTraces makes the traces of a scale: so many steps each.
func flowTraces(s Scale) []*flowTrace {
	n := 10 * s.Events
	return []*flowTrace{
		alignedTrace(n), sessionTrace("sessions of NEXMark", n, false), sessionTrace("sessions of users who come back", n, true), countTrace(n),
	}
}

// alignedTrace is four windows, one after the other, of 100,000 keys.
func alignedTrace(n int) *flowTrace {
	t := &flowTrace{name: "tumbling", way: WayAligned, limit: int64(n) * flowValue / 16}
	for i := range n {
		t.add(flowStep{w: uint64(4 * i / n), key: rng.Mix(uint64(i)) % 100_000})
		if (i+1)%(n/4) == 0 {
			t.fire(uint64(4 * i / n))
		}
	}
	return t
}

// sessionTrace is the bids of each bidder until there is none for ten seconds.
func sessionTrace(name string, n int, adversarial bool) *flowTrace {
	const gap = 10e9
	t := &flowTrace{name: name, way: WayUnaligned, limit: int64(n) * flowValue / 16}
	g := nexmark.NewGenerator(1, int64(n)/50, adversarial) // a fifth of the events is in open sessions
	type session struct {
		id  uint64
		end int64
	}
	open, ids, latest := map[int64]session{}, uint64(0), int64(0)
	events := make([]nexmark.Event, 4096)
	for first := int64(0); len(t.steps) < n; first += int64(len(events)) {
		g.Fill(events, first)
		for i := range events {
			if events[i].Kind != nexmark.KindBid || events[i].Time < latest-gap/2 {
				continue
			}
			b := events[i].Bid()
			s, ok := open[b.Bidder]
			if !ok {
				ids++
				s.id = ids
			}
			s.end = max(s.end, b.Time+gap)
			open[b.Bidder] = s
			t.add(flowStep{w: s.id, key: uint64(b.Bidder), expected: s.end})
			latest = max(latest, b.Time)
		}
		var due []session
		for bidder, s := range open {
			if s.end <= latest-gap/2 {
				due = append(due, s)
				delete(open, bidder)
			}
		}
		sortSessions(due, func(s session) (int64, uint64) { return s.end, s.id })
		for _, s := range due {
			t.fire(s.id)
		}
	}
	var left []session
	for _, s := range open {
		left = append(left, s)
	}
	sortSessions(left, func(s session) (int64, uint64) { return s.end, s.id })
	for _, s := range left {
		t.fire(s.id)
	}
	return t
}

// countTrace counts a million keys, some much more often than others.
func countTrace(n int) *flowTrace {
	const keys = 1_000_000
	t := &flowTrace{name: "counts of a million keys", way: WayRMW, limit: 6 << 20}
	r, z, scatter := rng.New(1, 1), rng.NewZipf(keys, 0.99), rng.NewScatter(keys)
	for range n {
		t.add(flowStep{key: uint64(scatter.Index(z.Draw(r)))})
	}
	t.fire(0)
	t.values, t.sum = 0, uint64(n)
	return t
}

func sortSessions[S any](all []S, of func(S) (end int64, id uint64)) {
	slices.SortFunc(all, func(a, b S) int {
		x, i := of(a)
		y, j := of(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(i, j))
	})
}

func (t *flowTrace) add(s flowStep) {
	t.steps = append(t.steps, s)
	t.values++
	t.sum += uint64(len(t.steps))
}

func (t *flowTrace) fire(w uint64) {
	t.fires = append(t.fires, w)
	t.steps[len(t.steps)-1].fire++
}

// FlowRun is what a trace came to with a store.
type FlowRun struct {
	Trace, Store   string
	Steps          int
	Seconds        float64
	Amplification  float64 // bytes written over those of keys and values
	LimitBytes     int64
	PeakMemory     int64 // of contents and index, where the store tells
	PeakDisk       int64
	PeakDiskRows   int64   // of it, what windows had there
	HitRate        float64 // of windows that were on disk, those that were read ahead
	StepsPerSecond float64
}

// RunFlow takes each store through each trace and yields what that came to. A store that
// yields other values than went in is an error.
func RunFlow(ctx context.Context, s Scale, names []string, stores map[string]OpenStore, progress func(done, total int, what string), yield func(FlowRun) error) error {
	traces := flowTraces(s)
	for i, t := range traces {
		for k, name := range names {
			if progress != nil {
				progress(i*len(names)+k, len(traces)*len(names), t.name+", "+name)
			}
			var best FlowRun
			for range s.Reps {
				if err := ctx.Err(); err != nil {
					return err
				}
				r, err := t.run(name, stores[name])
				if err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, name, err)
				}
				if best.Steps == 0 || r.Seconds < best.Seconds {
					best = r
				}
			}
			if err := yield(best); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *flowTrace) run(name string, open OpenStore) (r FlowRun, err error) {
	dir, err := os.MkdirTemp("", "heddle-flowkv-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := open(t.way, dir, t.limit)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	began := clock.NowNanos()
	values, sum, err := t.through(store)
	if err != nil {
		return r, err
	}
	seconds := float64(clock.NowNanos()-began) / 1e9
	if sum != t.sum || t.values > 0 && values != t.values {
		return r, fmt.Errorf("it gave back %d values with sum %d, %d with sum %d went in", values, sum, t.values, t.sum)
	}
	r = FlowRun{Trace: t.name, Store: name, Steps: len(t.steps), Seconds: seconds, LimitBytes: t.limit, StepsPerSecond: float64(len(t.steps)) / seconds}
	size := flowValue + 8 // with the key
	if t.way == WayRMW {
		size = 16
	}
	r.Amplification = float64(store.Written()) / float64(len(t.steps)*size)
	if m, ok := store.(interface{ Stats() window.Stats }); ok {
		st := m.Stats()
		r.PeakMemory, r.PeakDisk, r.PeakDiskRows = st.MemoryBytesMax, st.DiskBytesMax, st.DiskRowsMax
		if n := st.Hits + st.Misses; n > 0 {
			r.HitRate = float64(st.Hits) / float64(n)
		}
	}
	return r, nil
}

func (t *flowTrace) through(store WindowStore) (values, sum uint64, err error) {
	value, fires := make([]byte, flowValue), t.fires
	yield := func(v []byte) {
		values++
		sum += binary.LittleEndian.Uint64(v)
	}
	for i := range t.steps {
		s := &t.steps[i]
		if t.way == WayRMW {
			err = store.Add(s.w, s.key, 1)
		} else {
			binary.LittleEndian.PutUint64(value, uint64(i+1))
			err = store.Append(s.w, s.key, s.expected, value)
		}
		if err == nil && s.fire > 0 {
			err = store.Fire(fires[:s.fire], yield)
			fires = fires[s.fire:]
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return values, sum, nil
}

// OpenHeddle makes the stores of package storage/window.
func OpenHeddle(way Way, dir string, limit int64) (WindowStore, error) {
	o := window.Options{Limit: limit, FS: vfs.Disk{}, Name: dir + "/w"}
	h := &heddleStore{ids: map[uint64]uint32{}}
	switch way {
	case WayAligned:
		h.lists = window.NewLists(o)
	case WayUnaligned:
		h.own = window.NewUnaligned(o, 0, nil)
	case WayRMW:
		h.acc = window.NewAccumulators(o, 8, func(into, from []byte) {
			binary.LittleEndian.PutUint64(into, binary.LittleEndian.Uint64(into)+binary.LittleEndian.Uint64(from))
		})
	}
	return h, nil
}

// heddleStore is one of the three.
type heddleStore struct {
	lists *window.Lists
	own   *window.Unaligned
	acc   *window.Accumulators
	ids   map[uint64]uint32 // of windows of one key: in a job, a session knows its own
	fire  []uint32
	key   [8]byte
}

func (h *heddleStore) hash(key uint64) uint64 {
	binary.LittleEndian.PutUint64(h.key[:], key)
	return rng.Mix(key + 1)
}

func (h *heddleStore) Append(w, key uint64, expected int64, value []byte) (err error) {
	if h.lists != nil {
		hash := h.hash(key)
		return h.lists.Append(window.Span{Start: int64(w)}, hash, h.key[:], value)
	}
	id, ok := h.ids[w]
	if !ok {
		if id, err = h.own.Open(); err != nil {
			return err
		}
		h.ids[w] = id
	}
	return h.own.Append(id, expected, value)
}

func (h *heddleStore) Add(w, key uint64, n uint64) error {
	hash := h.hash(key)
	acc, _, err := h.acc.At(window.Span{Start: int64(w)}, hash, h.key[:])
	if err == nil {
		binary.LittleEndian.PutUint64(acc, binary.LittleEndian.Uint64(acc)+n)
	}
	return err
}

func (h *heddleStore) Fire(ws []uint64, yield func(value []byte)) error {
	switch {
	case h.lists != nil:
		for _, w := range ws {
			span := window.Span{Start: int64(w)}
			err := h.lists.Each([]window.Span{span}, func(_ uint64, _ []byte, values window.Values) error {
				for i := range values.Len() {
					yield(values.At(i))
				}
				return nil
			})
			if err = errors.Join(err, h.lists.Drop(span)); err != nil {
				return err
			}
		}
		return nil
	case h.acc != nil:
		span := window.Span{Start: int64(ws[0])}
		err := h.acc.Each([]window.Span{span}, func(_ uint64, _, acc []byte) error { yield(acc); return nil })
		return errors.Join(err, h.acc.Drop(span))
	}
	h.fire = h.fire[:0]
	for _, w := range ws {
		h.fire = append(h.fire, h.ids[w])
		delete(h.ids, w)
	}
	err := h.own.Each(h.fire, func(_ int, contents []byte) error {
		for value := range window.Contents(contents) {
			yield(value)
		}
		return nil
	})
	return errors.Join(err, h.own.Drop(h.fire))
}

// Stats returns what the store did.
func (h *heddleStore) Stats() window.Stats {
	switch {
	case h.lists != nil:
		return h.lists.Stats()
	case h.acc != nil:
		return h.acc.Stats()
	}
	return h.own.Stats()
}

func (h *heddleStore) Written() int64 { return h.Stats().WrittenBytes }
func (h *heddleStore) Close() error {
	switch {
	case h.lists != nil:
		return h.lists.Close()
	case h.acc != nil:
		return h.acc.Close()
	}
	return h.own.Close()
}

// goMaps keeps everything in memory, in Go's maps by window and key: what stores would be if memory had no
// end.
type goMaps struct {
	lists   map[uint64]map[uint64][][]byte
	numbers map[uint64]map[uint64]uint64
}

// OpenGoMaps makes them. They know no limit.
func OpenGoMaps(Way, string, int64) (WindowStore, error) {
	return &goMaps{map[uint64]map[uint64][][]byte{}, map[uint64]map[uint64]uint64{}}, nil
}

// Append implements [WindowStore].
func (g *goMaps) Append(w, key uint64, _ int64, value []byte) error {
	if g.lists[w] == nil {
		g.lists[w] = map[uint64][][]byte{}
	}
	g.lists[w][key] = append(g.lists[w][key], slices.Clone(value))
	return nil
}

// Add implements [WindowStore].
func (g *goMaps) Add(w, key uint64, n uint64) error {
	if g.numbers[w] == nil {
		g.numbers[w] = map[uint64]uint64{}
	}
	g.numbers[w][key] += n
	return nil
}

// Fire implements [WindowStore].
func (g *goMaps) Fire(ws []uint64, yield func(value []byte)) error {
	var number [8]byte
	for _, w := range ws {
		for _, list := range g.lists[w] {
			for _, value := range list {
				yield(value)
			}
		}
		for _, n := range g.numbers[w] {
			binary.LittleEndian.PutUint64(number[:], n)
			yield(number[:])
		}
		delete(g.lists, w)
		delete(g.numbers, w)
	}
	return nil
}

// Written implements [WindowStore].
func (*goMaps) Written() int64 { return 0 }

// Close implements [WindowStore].
func (*goMaps) Close() error { return nil }

// flowCourse measures Heddle's own stores, beside Go's maps.
func flowCourse(m *Measuring) error {
	loop := 0.0 // of Go's maps, ns
	return RunFlow(m.Ctx, m.Scale, []string{"go maps", "heddle"}, map[string]OpenStore{"go maps": OpenGoMaps, "heddle": OpenHeddle}, m.Progress, func(r FlowRun) error {
		nanos := 1e9 / r.StepsPerSecond
		if r.Store == "go maps" {
			loop = nanos
			return nil
		}
		return m.Emit(Line{
			Experiment: m.Name, Point: r.Trace, Strategy: r.Store, EventsPerSec: r.StepsPerSecond, NsPerEvent: nanos, Reps: m.Scale.Reps, Workers: 1,
			SerialLoopRatio: loop / nanos, LoopsNsPerEvent: map[string]float64{"go maps": loop},
			Values: map[string]float64{"write_amplification": r.Amplification, "limit_mib": float64(r.LimitBytes) / (1 << 20), "memory_mib_max": float64(r.PeakMemory) / (1 << 20), "disk_mib_max": float64(r.PeakDisk) / (1 << 20), "disk_rows_mib": float64(r.PeakDiskRows) / (1 << 20), "hit_rate": r.HitRate},
		})
	})
}
