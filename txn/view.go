package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/internal/arena"
)

// View is what a log keeps of how a batch went, so that the batch can be done again
// with less: which events aborted, and what makes the others independent of each
// other. Without its view a batch is run again from its events alone, so a view may
// be lost. The idea is that of MorphStreamR's abort and parametric views.
type View struct {
	Redo Redo
	// Logged tells, by operation, whether what it left is in the view. The others
	// have in it what they read of earlier events of the batch.
	Logged []bool
	// Text tells that the results of aborted events are in the view as JSON, too, for
	// an output file: the byte form of a value does not tell nil from empty.
	Text bool

	ops     int // operations that the plans listed
	aborted []abortedEvent
	parts   [][]byte // what Redo needs of the committed events
	counts  []int    // committed events of each part
}

// Redo is how the committed events of a batch are done again.
type Redo byte

// The ways to do a batch again.
const (
	// RedoPlain runs them like any batch.
	RedoPlain Redo = iota
	// RedoChains runs each chain by itself: what operations read of other chains is
	// in the view, as is what the logged operations left.
	RedoChains
	// RedoLevels runs the operations by their levels in the graph, which are in the
	// view: those of one level depend on lower ones only.
	RedoLevels
)

type abortedEvent struct {
	event   int // place in the batch
	verdict Verdict
	result  []byte
	text    []byte
}

// Viewable reports whether the batch can be done again chain by chain or level by
// level: it has no interval reads, computed keys or commutative operations, and the
// application has no windows.
func (x *Batch) Viewable() bool {
	if x.bound.windows || len(x.Late) > 0 {
		return false
	}
	if x.bound.simple {
		return true
	}
	for ev := range x.Events {
		for id := x.TxLo[ev]; id < x.TxHi[ev]; id++ {
			if x.Acc[id].Kind&(kindRange|kindDelta) != 0 {
				return false
			}
		}
	}
	return true
}

// findSimple finds whether operations and reads are such that all batches are viewable.
func (b *Bound) findSimple() {
	b.simple = true
	for _, k := range b.App.kinds {
		if k.rng != nil || k.win != nil || k.table.commutes() {
			b.simple = false
		}
	}
}

// kindsHash identifies the operations and reads, by which views speak of them.
func (a *App) kindsHash() uint64 {
	var h xxh3.Hasher
	for _, k := range a.kinds {
		// It never fails.
		_, _ = h.WriteString(k.name)
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Aborts returns how many events of an executed batch aborted.
func (x *Batch) Aborts() int { return x.Events - x.committedIn(0, x.Events) }

// AppendView adds the view of an executed batch to dst, or nothing when it would
// say nothing. The parts are those of AppendPart for each region, for a Redo other
// than RedoPlain.
func (x *Batch) AppendView(dst []byte, v *View, e *Executor, parts [][]byte) ([]byte, error) {
	n := x.Aborts()
	if n == 0 && v.Redo == RedoPlain {
		return dst, nil
	}
	dst = binary.LittleEndian.AppendUint64(dst, x.bound.App.kindsHash())
	dst = append(dst, byte(v.Redo))
	dst = binary.AppendUvarint(dst, uint64(x.Ops))
	if v.Redo == RedoChains {
		for _, logged := range v.Logged {
			dst = append(dst, bit(logged))
		}
	}
	dst, err := x.appendAborted(dst, n, e, v.Text)
	if err != nil || v.Redo == RedoPlain {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, uint64(len(parts)))
	for r, part := range parts {
		dst = binary.AppendUvarint(dst, uint64(x.committedIn(x.regionEvents(r))))
		dst = appendCounted(dst, part)
	}
	return dst, nil
}

// appendAborted adds the first n events that aborted, with their results.
func (x *Batch) appendAborted(dst []byte, n int, e *Executor, asText bool) ([]byte, error) {
	dst = binary.AppendUvarint(dst, uint64(n))
	last := 0
	for ev := 0; n > 0; ev++ {
		if x.Fail[ev] == committed {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(ev-last))
		dst = binary.AppendUvarint(dst, uint64(Verdict(x.Fail[ev])))
		dst = appendCounted(dst, x.Result(e, 0, ev))
		var text []byte
		if typ := x.bound.App.events[x.feed.refs[ev].typ]; asText && typ.wantsResults() {
			var err error
			if text, err = typ.appendResult(nil, uint32(ev)); err != nil {
				return dst, fmt.Errorf("result of event %d (%s): %w", x.First+ev, typ.Name(), err)
			}
		}
		dst = appendCounted(dst, text)
		n, last = n-1, ev
	}
	return dst, nil
}

func appendCounted(dst, item []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(item))), item...)
}

// committedIn returns how many of the events [lo, hi) committed.
func (x *Batch) committedIn(lo, hi int) int {
	n := 0
	for _, f := range x.Fail[lo:hi] {
		if f == committed {
			n++
		}
	}
	return n
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// AppendPart adds what a view says of a region's committed events, and returns how
// many values or levels that is. Different regions may be appended in parallel.
func (x *Batch) AppendPart(dst []byte, region int, v *View) (out []byte, items int) {
	kinds := x.bound.App.kinds
	base, refs := x.bases[region], x.plans[region].refs
	lo, hi := x.regionEvents(region)
	for ev := lo; ev < hi; ev++ {
		if x.Fail[ev] != committed {
			continue
		}
		for id := x.TxLo[ev]; id < x.TxHi[ev]; id++ {
			a := &x.Acc[id]
			if !a.Writes() { // what only looks committed, and need not look again
				continue
			}
			items++
			if v.Redo == RedoLevels {
				dst = binary.AppendUvarint(dst, uint64(x.levels[id]))
				continue
			}
			if v.Logged[a.Index()] {
				dst = kinds[a.Index()].table.appendVersion(dst, a.Slot)
				continue
			}
			for _, local := range refs[a.Refs : a.Refs+uint32(a.NRefs)] {
				if from := x.Src[base+local]; from == None {
					dst = append(dst, versionOfRow)
				} else {
					dst = kinds[x.Acc[from].Index()].table.appendVersion(dst, x.Acc[from].Slot)
				}
				items++
			}
		}
	}
	return dst, items
}

// Level finds the level of each operation that writes, for the parts of RedoLevels.
func (x *Batch) Level() {
	x.levels = arena.Resize(x.levels, len(x.Acc))
	for ev := range x.Events {
		for id := x.TxLo[ev]; id < x.TxHi[ev]; id++ {
			a := &x.Acc[id]
			if !a.Writes() {
				continue
			}
			region := int(id) / x.stride
			level := x.levelOf(x.Src[id])
			for _, local := range x.plans[region].refs[a.Refs : a.Refs+uint32(a.NRefs)] {
				level = max(level, x.levelOf(x.Src[x.bases[region]+local]))
			}
			x.levels[id] = level
		}
	}
}

// levelOf returns the level that sees what an access left.
func (x *Batch) levelOf(from uint32) uint32 {
	if from == None {
		return 0
	}
	return x.levels[from] + 1
}

// What a version in a view begins with.
const (
	versionOfRow  = 0 // none: the row as it stood before the batch
	versionAbsent = 1
	versionValue  = 2
)

func (t *Table[K, V]) appendVersion(dst []byte, slot uint32) []byte {
	if !t.rows.Has[slot] {
		return append(dst, versionAbsent)
	}
	return t.val.Append(append(dst, versionValue), &t.rows.Ver[slot])
}

// readVersion makes the version at the front of src that of a slot, and returns
// the rest and whether there was one.
func (t *Table[K, V]) readVersion(src []byte, slot uint32) (rest []byte, found bool, err error) {
	if len(src) == 0 {
		return nil, false, errShortView
	}
	switch src[0] {
	case versionOfRow:
		return src[1:], false, nil
	case versionAbsent:
		t.rows.Has[slot] = false
		return src[1:], true, nil
	case versionValue:
		t.rows.Has[slot] = true
		rest, err = t.val.Decode(src[1:], &t.rows.Ver[slot])
		return rest, true, err
	}
	return nil, false, fmt.Errorf("version of kind %d", src[0])
}

var errShortView = errors.New("the view of a batch is too short")

// ParseView reads the view of a batch of so many events, which refers to src. It is
// nil when it was written by a program with other operations.
func (b *Bound) ParseView(src []byte, events int) (*View, error) {
	if len(src) < 9 {
		return nil, errShortView
	}
	if binary.LittleEndian.Uint64(src) != b.App.kindsHash() {
		return nil, nil
	}
	v := &View{Redo: Redo(src[8])}
	var err error
	if v.ops, src, err = number(src[9:]); err != nil {
		return nil, err
	}
	if v.Redo > RedoLevels || v.Redo != RedoPlain && b.windows {
		return nil, fmt.Errorf("a view of kind %d", v.Redo)
	}
	if v.Redo == RedoChains {
		kinds := len(b.App.kinds)
		if len(src) < kinds {
			return nil, errShortView
		}
		v.Logged = make([]bool, kinds)
		for i := range v.Logged {
			v.Logged[i] = src[i] != 0
		}
		src = src[kinds:]
	}
	src, err = v.parseAborted(src, events)
	if err == nil && v.Redo != RedoPlain {
		src, err = v.parseParts(src, events)
	}
	if err == nil && len(src) != 0 {
		err = fmt.Errorf("the view of a batch has %d bytes too many", len(src))
	}
	return v, err
}

func (v *View) parseAborted(src []byte, events int) ([]byte, error) {
	n, src, err := number(src)
	if err != nil {
		return nil, err
	}
	if n > events {
		return nil, fmt.Errorf("%d of %d events aborted", n, events)
	}
	v.aborted = make([]abortedEvent, n)
	last := 0
	for i := range v.aborted {
		var verdict int
		a := &v.aborted[i]
		if a.event, src, err = number(src); err == nil {
			if verdict, src, err = number(src); err == nil {
				a.result, a.text, src, err = countedTwice(src)
			}
		}
		if err != nil {
			return nil, err
		}
		a.event += last
		a.verdict = Verdict(verdict)
		if verdict == 0 || verdict > int(Panicked) {
			return nil, fmt.Errorf("event %d aborted with verdict %d", a.event, verdict)
		}
		if a.event >= events || i > 0 && a.event == last {
			return nil, fmt.Errorf("event %d of %d aborted", a.event, events)
		}
		last = a.event
	}
	return src, nil
}

func (v *View) parseParts(src []byte, events int) ([]byte, error) {
	n, src, err := number(src)
	if err != nil {
		return nil, err
	}
	left := events - len(v.aborted)
	for range n { // each takes bytes of src, so that there cannot be many
		var count int
		var part []byte
		if count, src, err = number(src); err == nil {
			part, src, err = counted(src)
		}
		if err != nil {
			return nil, err
		}
		left -= count
		v.parts, v.counts = append(v.parts, part), append(v.counts, count)
	}
	if left != 0 {
		return nil, fmt.Errorf("the parts of a view have %d events too few", left)
	}
	return src, nil
}

func number(src []byte) (int, []byte, error) {
	u, n := binary.Uvarint(src)
	if n <= 0 || u > 1<<40 {
		return 0, nil, errShortView
	}
	return int(u), src[n:], nil
}

func countedTwice(src []byte) (first, second, rest []byte, err error) {
	if first, rest, err = counted(src); err == nil {
		second, rest, err = counted(rest)
	}
	return first, second, rest, err
}

func counted(src []byte) (item, rest []byte, err error) {
	n, src, err := number(src)
	if err != nil || n > len(src) {
		return nil, nil, errShortView
	}
	return src[:n], src[n:], nil
}
