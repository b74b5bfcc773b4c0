package operators

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// Span is the time of a window in ns, from Start up to and without End.
type Span = window.Span

// Windows says into which windows items go: by their event time, or by how many there are.
type Windows struct {
	kind        windowKind
	size, slide int64 // ns, or items
	offset      int64
	gap         int64
	gapBy       *gapFunc // of each item, or nil
	lateness    int64
}

// gapFunc is a function of an item, whose type is known to the operator.
type gapFunc struct{ of any }

type windowKind uint8

const (
	sliding windowKind = iota
	cumulating
	session
	pane
	counting
)

// Tumbling are windows of a size, one behind the other.
func Tumbling(size time.Duration) Windows { return Sliding(size, size) }

// Sliding are windows of a size, of which one begins after each slide.
func Sliding(size, slide time.Duration) Windows {
	return Windows{kind: sliding, size: int64(size), slide: int64(slide)}
}

// Cumulating are windows that grow by a step up to a size, and then begin anew.
func Cumulating(step, size time.Duration) Windows {
	return Windows{kind: cumulating, size: int64(size), slide: int64(step)}
}

// Sessions are windows of one key each: items belong to one as long as none of them is a gap or
// more behind the one before. A session ends a gap behind its last item.
func Sessions(gap time.Duration) Windows { return Windows{kind: session, gap: int64(gap)} }

// SessionsBy are sessions whose gap each item says: one belongs to a session if it is within the gap of
// an item of it, or that one is within its own. Items have to be of the type that the operator gets.
func SessionsBy[T any](gap func(item *T) time.Duration) Windows {
	return Windows{kind: session, gapBy: &gapFunc{func(item *T) int64 { return int64(gap(item)) }}}
}

// After are windows of one key each, which begin with an item that no other window of the key has and
// end so long behind it. Items come to them in the order of their times: an item waits until the
// watermark has passed it.
func After(first time.Duration) Windows { return Windows{kind: pane, gap: int64(first)} }

// Counts are windows of n items of one key each, in the order in which they come; they fire with the
// last one, and have its time. What is left at the end does not fire. A window's Span is from its earliest item
// to the latest one.
func Counts(n int) Windows { return SlidingCounts(n, n) }

// SlidingCounts are windows of the last n items of a key, whenever slide more have come.
func SlidingCounts(n, slide int) Windows {
	return Windows{kind: counting, size: int64(n), slide: int64(slide)}
}

// Lateness makes windows that are the same for all keys fire once more, so long behind their
// end, for those keys to which late items came in between: with all their items, and so much
// later. The source has to let late items go on, see [Input.Lateness].
func (w Windows) Lateness(by time.Duration) Windows {
	w.lateness = int64(by)
	return w
}

// gapOf returns the gap of an item.
func gapOf[T any](w *Windows) (func(item *T) int64, error) {
	if w.gapBy == nil {
		return func(*T) int64 { return w.gap }, nil
	}
	f, ok := w.gapBy.of.(func(*T) int64)
	if !ok {
		return nil, fmt.Errorf("sessions with a gap by item: the function is %T, items are %T", w.gapBy.of, *new(T))
	}
	return f, nil
}

// own reports whether each key has windows of its own, by time.
func (w *Windows) own() bool { return w.kind == session || w.kind == pane }

// aligned reports whether windows are the same for all keys.
func (w *Windows) aligned() bool { return w.kind == sliding || w.kind == cumulating }

// access returns how windows are written and read, as one value that is changed or as a list.
func (w *Windows) access(changed bool) plan.AccessPattern {
	switch {
	case w.aligned() && changed:
		return plan.AlignedRMW
	case w.aligned():
		return plan.Aligned
	case changed:
		return plan.UnalignedRMW
	}
	return plan.Unaligned
}

// Offset moves windows that would begin at multiples of their slide.
func (w Windows) Offset(by time.Duration) Windows {
	w.offset = int64(by)
	return w
}

// sizeMax is the longest time of windows in ns: 73 years, so that no end overflows.
const sizeMax = int64(1) << 61

// lastInstant returns the time of what a window puts out: its last one, as far as times go.
func lastInstant(end int64) int64 { return min(end-1, timeMax) }

func (w *Windows) check() error {
	switch {
	case w.kind != counting && max(w.size, w.gap, w.slide, w.offset, -w.offset) > sizeMax:
		return fmt.Errorf("windows of more than %v", time.Duration(sizeMax))
	case w.lateness < 0 || w.lateness > sizeMax/2:
		return fmt.Errorf("a lateness of %v: 0 to %v is allowed", time.Duration(w.lateness), time.Duration(sizeMax/2))
	case w.lateness > 0 && !w.aligned():
		return fmt.Errorf("a lateness of %v for windows of one key each: it is for windows that are the same for all keys", time.Duration(w.lateness))
	case w.own() && w.gap <= 0 && w.gapBy == nil:
		return fmt.Errorf("windows of one key each with a gap of %v: more than 0 is needed", time.Duration(w.gap))
	case w.own():
		return nil
	case w.kind == counting && (w.slide <= 0 || w.size < w.slide || w.size > countMax):
		return fmt.Errorf("windows of %d items that move by %d: 0 < slide <= size <= %d is needed", w.size, w.slide, countMax)
	case w.kind == counting:
		return nil
	case w.slide <= 0 || w.size < w.slide:
		return fmt.Errorf("windows of %v that move by %v: 0 < slide <= size is needed", time.Duration(w.size), time.Duration(w.slide))
	case w.kind == cumulating && w.size%w.slide != 0:
		return fmt.Errorf("windows that grow by %v up to %v: a multiple is needed", time.Duration(w.slide), time.Duration(w.size))
	}
	return nil
}

// SliceNanos returns the length of slices of which all windows consist, 0 where windows do not
// overlap or each key has its own.
func (w *Windows) SliceNanos() int64 {
	if !w.aligned() || w.lateness > 0 || w.kind == sliding && w.size == w.slide {
		return 0
	}
	return gcd(w.size, w.slide)
}

func gcd(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

func floor(t, unit int64) int64 {
	q := t / unit
	if t%unit < 0 {
		q--
	}
	return q * unit
}

// of yields the windows of a time, the one that ends first at the front.
func (w *Windows) of(t int64, yield func(Span)) {
	if w.kind == cumulating {
		start := floor(t-w.offset, w.size) + w.offset
		for end := start + floor(t-start, w.slide) + w.slide; end <= start+w.size; end += w.slide {
			yield(Span{Start: start, End: end})
		}
		return
	}
	last := floor(t-w.offset, w.slide) + w.offset
	for start := last - (w.size-1)/w.slide*w.slide; start <= last; start += w.slide {
		if t < start+w.size {
			yield(Span{Start: start, End: start + w.size})
		}
	}
}

// aligned is the windows that are open in a partition, when they are the same for all keys. Its
// units are what contents are kept by: windows, or slices of them.
type aligned struct {
	w     Windows
	slice int64         // 0: windows themselves
	units map[Span]bool // open
	fired int64         // windows that end at or before it are gone
	spans []Span        // scratch
	last  Span          // slice of the last item

	missed  []Span                   // scratch: units that fired before a late item came
	lates   []late                   // items that go there, behind what fires
	changed map[Span]map[string]bool // keys to which late items came, by window
}

// later puts a late item into a unit when what is due has fired.
func (a *aligned) later(u Span, key []byte, put func() error) {
	a.lates = append(a.lates, late{u, func() error {
		if a.changed[u] == nil {
			a.changed[u] = map[string]bool{}
		}
		a.changed[u][string(key)] = true
		return put()
	}})
}

// late puts an item into a unit that had fired when it came.
type late struct {
	unit Span
	put  func() error
}

func newAligned(w Windows, t *task) *aligned {
	a := &aligned{w: w, slice: plan.SliceNanos.Of(t.stage.e.g, t.vertex), units: map[Span]bool{}, fired: math.MinInt64, changed: map[Span]map[string]bool{}}
	t.lasts(fmt.Sprintf("open %v", w), a.save, a.load)
	t.stage.e.dues = append(t.stage.e.dues, a.addEnds)
	return a
}

func (a *aligned) save(w *image.Writer) error {
	w.Int(a.fired)
	w.Item()
	for _, u := range slices.SortedFunc(maps.Keys(a.units), bySpan) {
		w.Int(u.Start)
		w.Int(u.End)
		for _, key := range slices.Sorted(maps.Keys(a.changed[u])) {
			w.Bytes([]byte(key))
		}
		w.Item()
	}
	return nil
}

func (a *aligned) load(r *image.Reader) error {
	r.Want()
	a.fired = r.Int()
	for r.Item() {
		u := Span{Start: r.Int(), End: r.Int()}
		a.units[u] = true
		for len(r.Rest) > 0 {
			if a.changed[u] == nil {
				a.changed[u] = map[string]bool{}
			}
			a.changed[u][string(r.Bytes())] = true
		}
	}
	return nil
}

// unitsOf returns the units into which an item goes. Of one that is late, that is those that had not
// fired at the watermark that it missed; missed are those that did and still allow for it.
func (a *aligned) unitsOf(t, watermark int64, c *Counters) []Span {
	a.missed = a.missed[:0]
	if watermark == math.MinInt64 {
		return a.unitsAt(t)
	}
	units := a.unitsAt(t)
	n := 0
	for _, u := range units {
		switch {
		case u.End > watermark:
			units[n] = u
			n++
		case u.End+a.w.lateness > watermark:
			a.missed = append(a.missed, u)
		}
	}
	if n == 0 && len(a.missed) == 0 {
		c.Late.Add(1)
	}
	return units[:n]
}

func (a *aligned) unitsAt(t int64) []Span {
	a.spans = a.spans[:0]
	if t >= a.last.Start && t < a.last.End { // as most items are
		return append(a.spans, a.last)
	}
	switch {
	case a.slice > 0:
		start := floor(t-a.w.offset, a.slice) + a.w.offset
		a.last = Span{Start: start, End: start + a.slice}
		a.spans = append(a.spans, a.last)
	case a.w.size == a.w.slide:
		start := floor(t-a.w.offset, a.w.size) + a.w.offset
		a.last = Span{Start: start, End: start + a.w.size}
		a.spans = append(a.spans, a.last)
	default:
		a.w.of(t, func(s Span) { a.spans = append(a.spans, s) })
	}
	for _, s := range a.spans {
		a.units[s] = true
	}
	return a.spans
}

// firing is a window that fires: with the units that it consists of, at a time, for some keys if
// only is not nil.
type firing struct {
	w     Span
	units []Span
	at    int64
	only  map[string]bool
}

// skips reports whether a key does not fire.
func (f *firing) skips(key []byte) bool { return f.only != nil && !f.only[string(key)] }

// fire yields the windows that end at or before the watermark, in the order of their ends, puts late
// items into those that fired, yields these again when they allow for no more, and drops units that
// no window needs any more.
func (a *aligned) fire(watermark int64, c *Counters, yield func(f *firing) error, drop func(unit Span) error) error {
	if len(a.units) == 0 {
		return nil
	}
	for _, w := range a.due(watermark) {
		units := a.within(w)
		if len(units) == 0 {
			continue
		}
		c.Fires.Add(1)
		if err := yield(&firing{w, units, lastInstant(w.End), nil}); err != nil {
			return err
		}
	}
	var failed error
	a.lates = slices.DeleteFunc(a.lates, func(l late) bool {
		if l.unit.End > watermark || failed != nil { // it fires with a later pass
			return false
		}
		failed = l.put()
		return true
	})
	if failed != nil {
		return failed
	}
	for _, w := range slices.SortedFunc(maps.Keys(a.changed), bySpan) {
		if w.End+a.w.lateness > watermark {
			continue
		}
		c.Fires.Add(1)
		if err := yield(&firing{w, []Span{w}, lastInstant(w.End + a.w.lateness), a.changed[w]}); err != nil {
			return err
		}
		delete(a.changed, w)
	}
	for u := range a.units {
		if a.lastEnd(u)+a.w.lateness <= watermark {
			delete(a.units, u)
			a.last = Span{}
			if err := drop(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachDue yields the windows that end after those that fired, up to the watermark: those that consist of slices once for
// each slice.
func (a *aligned) eachDue(watermark int64, yield func(w Span)) {
	due := func(w Span) {
		if w.End > a.fired && w.End <= watermark {
			yield(w)
		}
	}
	for u := range a.units {
		if a.slice == 0 {
			due(u)
		} else {
			a.w.of(u.Start, due)
		}
	}
}

// due returns them in the order of their ends. They are gone then.
func (a *aligned) due(watermark int64) (due []Span) {
	a.eachDue(watermark, func(w Span) { due = append(due, w) })
	a.fired = max(a.fired, watermark)
	slices.SortFunc(due, bySpan)
	return slices.Compact(due)
}

// addEnds adds the ends of windows that are due.
func (a *aligned) addEnds(watermark int64, ends []int64) []int64 {
	a.eachDue(watermark, func(w Span) { ends = append(ends, w.End) })
	return ends
}

// bySpan orders windows by their ends, longer ones first.
func bySpan(a, b Span) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start)) }

// within returns the open units of a window.
func (a *aligned) within(w Span) (units []Span) {
	if a.slice == 0 {
		return []Span{w}
	}
	if (w.End-w.Start)/a.slice > int64(len(a.units)) {
		for u := range a.units {
			if u.Start >= w.Start && u.End <= w.End {
				units = append(units, u)
			}
		}
		slices.SortFunc(units, bySpan)
		return units
	}
	for start := w.Start; start < w.End; start += a.slice {
		if u := (Span{Start: start, End: start + a.slice}); a.units[u] {
			units = append(units, u)
		}
	}
	return units
}

// lastEnd returns when the last window ends that a unit belongs to.
func (a *aligned) lastEnd(u Span) int64 {
	switch {
	case a.slice == 0:
		return u.End
	case a.w.kind == cumulating:
		return floor(u.Start-a.w.offset, a.w.size) + a.w.offset + a.w.size
	}
	return floor(u.Start-a.w.offset, a.w.slide) + a.w.offset + a.w.size
}
