package txn

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"

	"github.com/segmentio/encoding/json"
)

// Position is where a source stands: what comes before was delivered or discarded.
type Position struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // bytes of the file's contents, decompressed
	Line   int    `json:"line"`   // lines or records before
}

// Resumer is a source that can go on at a position that it told before. It is called
// once, before Fill.
type Resumer interface {
	Resume(p Position) error
}

// discarded is something that a source could not make an event of.
type discarded struct {
	before int    // events that the feed had then
	letter []byte // a line of JSON that tells what and why
}

// Mark tells where the source stands behind all that it put into the feed so far.
func (f *Feed) Mark(p Position) { f.at, f.marked = p, true }

// Position returns where the source stands behind the feed's events, if it told.
func (f *Feed) Position() (Position, bool) { return f.at, f.marked }

// Discard keeps a line of JSON without its end about something that could not become an
// event, for a file of dead letters. The memory is the feed's from now on.
func (f *Feed) Discard(letter []byte) {
	f.discards = append(f.discards, discarded{len(f.refs), letter})
}

// Discards returns the number of lines kept by Discard.
func (f *Feed) Discards() int { return len(f.discards) }

// Told reports whether the feed has more to tell than its events.
func (f *Feed) Told() bool { return f.marked || len(f.discards) > 0 }

// told is what a feed has to tell besides its events, as a log keeps it.
type told struct {
	At       *Position         `json:"at,omitempty"`
	Before   []int             `json:"before,omitempty"`
	Discards []json.RawMessage `json:"discards,omitempty"`
}

// AppendTold adds what the feed has to tell besides its events to dst.
func (f *Feed) AppendTold(dst []byte) ([]byte, error) {
	var t told
	if f.marked {
		t.At = &f.at
	}
	for _, d := range f.discards {
		t.Before, t.Discards = append(t.Before, d.before), append(t.Discards, d.letter)
	}
	return json.Append(dst, t, 0)
}

// Tell reads what AppendTold added.
func (f *Feed) Tell(src []byte) error {
	var t told
	if err := json.Unmarshal(src, &t); err != nil {
		return err
	}
	if len(t.Before) != len(t.Discards) {
		return errors.New("discards without their places")
	}
	if t.At != nil {
		f.Mark(*t.At)
	}
	for i, before := range t.Before {
		f.discards = append(f.discards, discarded{before, t.Discards[i]})
	}
	return nil
}

// Cut takes events off the end, so that n are left.
func (f *Feed) Cut(n int) {
	for ; len(f.refs) > n; f.refs = f.refs[:len(f.refs)-1] {
		last := f.refs[len(f.refs)-1]
		f.app.events[last.typ].cut(f.id, last.place)
	}
}

// Input is an event type as a source of foreign data sees it.
type Input struct {
	app *App
	typ int
}

// Inputs returns the event types in declaration order.
func (a *App) Inputs() []Input {
	out := make([]Input, len(a.events))
	for i := range out {
		out[i] = Input{a, i}
	}
	return out
}

// Name returns the name of the event type.
func (in Input) Name() string { return in.app.events[in.typ].Name() }

// Type returns the type of its events.
func (in Input) Type() reflect.Type {
	event, _ := in.app.events[in.typ].goTypes()
	return event
}

// PushJSON pushes the event that a JSON value is, by the rules of encoding/json, fields
// that the type does not have being a mistake.
func (in Input) PushJSON(f *Feed, src []byte) error { return in.app.events[in.typ].pushJSON(f, src) }

// Push pushes an event of the type.
func (in Input) Push(f *Feed, event reflect.Value) { in.app.events[in.typ].pushValue(f, event) }

// AppendJSON adds event i of the feed to dst as JSON.
func (f *Feed) AppendJSON(dst []byte, i int) ([]byte, error) {
	r := f.refs[i]
	return f.app.events[r.typ].appendJSON(dst, f.id, r.place)
}

// appendInput adds event i to a letter: as JSON, or in its byte form if it is one that
// JSON cannot express, such as NaN.
func (f *Feed) appendInput(dst []byte, i int) []byte {
	at := len(dst)
	out, err := f.AppendJSON(append(dst, `,"input":`...), i)
	if err == nil {
		return out
	}
	dst = append(dst[:at], `,"bytes":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, f.AppendEvent(nil, i)), '"')
}

func (ev *Event[E, R]) goTypes() (event, result reflect.Type) {
	return reflect.TypeFor[E](), reflect.TypeFor[R]()
}

func (ev *Event[E, R]) pushJSON(f *Feed, src []byte) error {
	place := len(ev.feeds[f.id])
	var none E
	ev.Push(f, none) // decoded in place, so that nothing is allocated for it
	rest, err := json.Parse(src, &ev.feeds[f.id][place], json.DisallowUnknownFields)
	if err == nil && len(bytes.TrimSpace(rest)) != 0 {
		err = errors.New("something follows the event")
	}
	if err != nil {
		f.Cut(len(f.refs) - 1)
	}
	return err
}

func (ev *Event[E, R]) cut(feed int, place uint32) { ev.feeds[feed] = ev.feeds[feed][:place] }

func (ev *Event[E, R]) pushValue(f *Feed, event reflect.Value) {
	ev.Push(f, event.Interface().(E))
}

func (ev *Event[E, R]) appendJSON(dst []byte, feed int, place uint32) ([]byte, error) {
	return json.Append(dst, &ev.feeds[feed][place], 0)
}

// Rejection is an event that its plan would not have, see [Plan.Reject].
type Rejection struct {
	Event  int // place in the batch
	Reason string
}

// Rejected is the verdict of an event that its plan rejected.
const Rejected Verdict = 0xfffd

// Reject says that the event cannot be meant, such as an amount below zero, and why. The
// plan lists nothing and returns after it. With a file of dead letters the event goes
// there, and its outcome is an abort with [Rejected]; without one the run stops before
// it.
func (p *Plan) Reject(reason string) {
	if p.listedAny() {
		panic("the plan rejects an event for which it listed something: " + reason)
	}
	if !p.app.rejectable {
		panic(&RejectedError{reason})
	}
	p.rejected = true
	switch {
	case p.frame != nil:
		p.frame.Verdict = Rejected
		return
	case p.mode == planAhead || p.mode == planCheck || p.mode == planKeys: // its turn comes
		return
	}
	p.rejections = append(p.rejections, Rejection{int(p.event), reason})
	if p.serial != nil {
		p.serial.fail[p.event] = rejected
	}
}

// rejected is the outcome of an event that its plan rejected.
const rejected = uint64(None)<<16 | uint64(Rejected)

// RejectedError tells that a plan rejected an event, and no dead letters are kept.
type RejectedError struct{ Reason string }

func (e *RejectedError) Error() string { return "rejected: " + e.Reason }

// listedAny reports whether the plan of the event in hand listed anything.
func (p *Plan) listedAny() bool {
	if p.frame != nil {
		return len(p.frame.Steps) > 0
	}
	return p.listed > 0 || len(p.reads) > 0
}

// KeepRejections makes rejected events outcomes and not panics. Before the first batch.
func (b *Bound) KeepRejections() { b.App.rejectable = true }

// Rejections returns how many events of the batch were rejected.
func (x *Batch) Rejections() int { return len(x.rejections) }

// sealRejections gathers what the regions rejected.
func (x *Batch) sealRejections() {
	x.rejections = x.rejections[:0]
	for r := range x.plans {
		x.rejections = append(x.rejections, x.plans[r].rejections...)
	}
}

// SettleRejections gives the events that were rejected their outcome. After execution,
// which knows nothing of them: they have no accesses.
func (x *Batch) SettleRejections() {
	for _, r := range x.rejections {
		x.Fail[r.Event] = rejected
	}
}

// Letters adds lines about what became no event, and of the first done events about
// those that were rejected, in the order of the input, and returns how many.
func (x *Batch) Letters(dst []byte, done int) (out []byte, n int) {
	left := x.rejections
	reject := func(before int) {
		for len(left) > 0 && left[0].Event < before {
			r := left[0]
			left = left[1:]
			dst = fmt.Appendf(dst, `{"event":%d,"type":`, x.First+r.Event)
			dst = json.AppendEscape(dst, x.EventName(r.Event), 0)
			dst = json.AppendEscape(append(dst, `,"reason":`...), r.Reason, 0)
			dst = x.feed.appendInput(dst, r.Event)
			dst = append(dst, "}\n"...)
			n++
		}
	}
	for _, d := range x.feed.discards {
		if d.before > done {
			break
		}
		reject(d.before)
		dst = append(append(dst, d.letter...), '\n')
		n++
	}
	reject(done)
	return dst, n
}
