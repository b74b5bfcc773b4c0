package txn

import (
	"context"
	"errors"
	"io"
	"iter"
	"reflect"

	"github.com/segmentio/encoding/json"

	"github.com/heddle-stream/heddle/internal/codec"
)

// Event is a declared type of event: values of E go in, results of R come out.
type Event[E, R any] struct {
	app    *App
	name   string
	id     uint16
	plan   func(*Plan, E)
	time   func(E) int64
	result func(Outcome, E) R
	sinks  []func(R)

	input  codec.Codec[E]
	output codec.Codec[R]
	feeds  [][]E // by feed
	out    []R   // results of the batch, by place among the batch's events
	eptrs  bool
}

// EventOption says something of an event's types.
type EventOption[E, R any] func(*Event[E, R])

// EventCodecs gives the byte forms of events and results that have no derived
// ones. A nil part leaves the derived codec in place.
func EventCodecs[E, R any](event Codec[E], result Codec[R]) EventOption[E, R] {
	return func(ev *Event[E, R]) {
		if event.Append != nil {
			ev.input = codec.Codec[E](event)
		}
		if result.Append != nil {
			ev.output = codec.Codec[R](result)
		}
	}
}

// On declares an event type. The plan lists the operations of an event's
// transaction and depends on the event alone. The result turns the outcome into
// what sinks get; nil when there is nothing to tell.
func On[E, R any](app *App, name string, plan func(p *Plan, event E), result func(out Outcome, event E) R, opts ...EventOption[E, R]) *Event[E, R] {
	where := caller()
	ev := &Event[E, R]{app: app, name: name, id: uint16(len(app.events)), plan: plan, result: result}
	app.declare("event", name, where)
	if plan == nil {
		app.fault(where, "event %q has a nil plan", name)
	}
	for _, opt := range opts {
		opt(ev)
	}
	ev.input = derived(app, where, "event "+name, ev.input)
	if result != nil {
		ev.output = derived(app, where, "result of "+name, ev.output)
	}
	ev.eptrs = sharesMemory(reflect.TypeFor[E]())
	ev.grow(app.feeds)
	app.events = append(app.events, ev)
	return ev
}

// Name returns the declared name.
func (ev *Event[E, R]) Name() string { return ev.name }

// Each adds a sink: it gets each result, in event order over all event types,
// called by one goroutine.
func (ev *Event[E, R]) Each(sink func(result R)) { ev.sinks = append(ev.sinks, sink) }

// Push puts an event behind those that the feed holds.
func (ev *Event[E, R]) Push(f *Feed, event E) {
	f.refs = append(f.refs, eventRef{ev.id, uint32(len(ev.feeds[f.id]))})
	ev.feeds[f.id] = append(ev.feeds[f.id], event)
}

// Seq returns a source of the sequence's events.
func (ev *Event[E, R]) Seq(events iter.Seq[E]) Source {
	next, stop := iter.Pull(events)
	return SourceFunc(func(_ context.Context, f *Feed, limit int) error {
		for range limit {
			e, ok := next()
			if !ok {
				stop()
				return io.EOF
			}
			ev.Push(f, e)
		}
		return nil
	})
}

// Slice returns a source of the given events.
func (ev *Event[E, R]) Slice(events []E) Source {
	return SourceFunc(func(_ context.Context, f *Feed, limit int) error {
		n := min(limit, len(events))
		for _, e := range events[:n] {
			ev.Push(f, e)
		}
		if events = events[n:]; len(events) == 0 {
			return io.EOF
		}
		return nil
	})
}

// Source delivers events in their order. Fill pushes at most limit events and
// returns io.EOF with or after the last; it waits for at least one event, not
// for all. One goroutine calls it.
type Source interface {
	Fill(ctx context.Context, f *Feed, limit int) error
}

// SourceFunc is a function as a Source.
type SourceFunc func(ctx context.Context, f *Feed, limit int) error

// Fill calls the function.
func (fn SourceFunc) Fill(ctx context.Context, f *Feed, limit int) error { return fn(ctx, f, limit) }

// eventRef is an event in a feed: its type and its place among that type's.
type eventRef struct {
	typ   uint16
	place uint32
}

// Feed holds events on their way into batches. One goroutine at a time.
type Feed struct {
	app  *App
	id   int
	refs []eventRef

	at       Position
	marked   bool // the source told where it stands
	discards []discarded
}

// Len returns the number of events that the feed holds.
func (f *Feed) Len() int { return len(f.refs) }

// Reset empties the feed.
func (f *Feed) Reset() {
	f.refs = f.refs[:0]
	f.at, f.marked, f.discards = Position{}, false, f.discards[:0]
	for _, ev := range f.app.events {
		ev.resetFeed(f.id)
	}
}

// MoveTo puts all events behind those of dst and empties f.
func (f *Feed) MoveTo(dst *Feed) {
	for _, d := range f.discards {
		dst.discards = append(dst.discards, discarded{len(dst.refs) + d.before, d.letter})
	}
	if f.marked {
		dst.Mark(f.at)
	}
	for _, r := range f.refs {
		f.app.events[r.typ].move(f.id, r.place, dst)
	}
	f.Reset()
}

// EventType returns the number of the type of event i.
func (f *Feed) EventType(i int) int { return int(f.refs[i].typ) }

// AppendEvent adds the byte form of event i to dst.
func (f *Feed) AppendEvent(dst []byte, i int) []byte {
	return f.app.events[f.refs[i].typ].encode(dst, f.id, f.refs[i].place)
}

// ErrEventType tells of an encoded event whose type the application lacks.
var ErrEventType = errors.New("unknown event type")

// PushEncoded decodes an event of the given type from the front of src, pushes
// it and returns the rest.
func (f *Feed) PushEncoded(typ int, src []byte) ([]byte, error) {
	if typ < 0 || typ >= len(f.app.events) {
		return nil, ErrEventType
	}
	return f.app.events[typ].decode(f, src)
}

// eventRuntime is an event type as the engine runs it.
type eventRuntime interface {
	Name() string
	planOne(p *Plan, feed int, place uint32)
	inPlace(s *Serial, lo, hi int)
	emit(w *Worker, feed int, place, event uint32)
	deliver(event uint32)
	hashResult(w *Worker, event uint32) []byte
	appendResult(dst []byte, event uint32) ([]byte, error)
	wantsResults() bool
	hasTime() bool
	timeOf(feed int, place uint32) int64
	hasSinks() bool
	boxedResult(w *Worker, feed int, place uint32) []byte
	begin(events int)
	grown(events int)
	moveResult(from, to uint32)
	decodeResult(event uint32, src []byte) error
	resetFeed(feed int)
	grow(feeds int)
	move(feed int, place uint32, dst *Feed)
	goTypes() (event, result reflect.Type)
	pushJSON(f *Feed, src []byte) error
	pushValue(f *Feed, event reflect.Value)
	cut(feed int, place uint32)
	appendJSON(dst []byte, feed int, place uint32) ([]byte, error)
	encode(dst []byte, feed int, place uint32) []byte
	decode(f *Feed, src []byte) ([]byte, error)
}

func (ev *Event[E, R]) planOne(p *Plan, feed int, place uint32) { ev.plan(p, ev.feeds[feed][place]) }

// inPlace runs the events [lo, hi) of a batch serially, which are all of the type and stand
// side by side in the feed: of each the plan with all operations, then the result.
func (ev *Event[E, R]) inPlace(s *Serial, lo, hi int) {
	p, feed := s.plan, s.x.feed
	place := feed.refs[lo].place
	events := ev.feeds[feed.id][place:][:hi-lo]
	for i := range events {
		if p.failed != OK {
			s.rearm()
		}
		p.begin(uint32(lo + i))
		p.stamp++
		ev.plan(p, events[i])
		if s.more || p.failed != OK || p.passed != len(p.reads) || p.rejected {
			s.planned()
		}
		p.ops += p.listed
		p.made += len(p.reads)
		if ev.result != nil {
			s.phase = phaseResult
			ev.out[lo+i] = ev.result(Outcome{&s.w, p.event}, events[i])
			s.phase = phasePlan
		}
	}
}

func (ev *Event[E, R]) hasTime() bool { return ev.time != nil }

func (ev *Event[E, R]) timeOf(feed int, place uint32) int64 { return ev.time(ev.feeds[feed][place]) }

func (ev *Event[E, R]) wantsResults() bool { return ev.result != nil }

func (ev *Event[E, R]) begin(events int) {
	if ev.result == nil {
		return
	}
	clear(ev.out)
	if cap(ev.out) < events {
		ev.out = make([]R, events)
	}
	ev.out = ev.out[:events]
}

func (ev *Event[E, R]) emit(w *Worker, feed int, place, event uint32) {
	if ev.result != nil {
		ev.out[event] = ev.result(Outcome{w, event}, ev.feeds[feed][place])
	}
}

func (ev *Event[E, R]) deliver(event uint32) {
	for _, sink := range ev.sinks {
		sink(ev.out[event])
	}
}

// hashResult returns the byte form of the event's result in the worker's buffer.
func (ev *Event[E, R]) hashResult(w *Worker, event uint32) []byte {
	w.buf = w.buf[:0]
	if ev.result != nil {
		w.buf = ev.output.Append(w.buf, &ev.out[event])
	}
	return w.buf
}

func (ev *Event[E, R]) appendResult(dst []byte, event uint32) ([]byte, error) {
	return json.Append(dst, &ev.out[event], json.SortMapKeys)
}

// grow makes room for feeds. Nobody may use any feed meanwhile: afterwards feeds
// can be filled and read by different goroutines.
func (ev *Event[E, R]) grow(feeds int) {
	for len(ev.feeds) < feeds {
		ev.feeds = append(ev.feeds, nil)
	}
}

func (ev *Event[E, R]) resetFeed(feed int) {
	if ev.eptrs {
		clear(ev.feeds[feed])
	}
	ev.feeds[feed] = ev.feeds[feed][:0]
}

func (ev *Event[E, R]) move(feed int, place uint32, dst *Feed) { ev.Push(dst, ev.feeds[feed][place]) }

func (ev *Event[E, R]) encode(dst []byte, feed int, place uint32) []byte {
	return ev.input.Append(dst, &ev.feeds[feed][place])
}

func (ev *Event[E, R]) decode(f *Feed, src []byte) ([]byte, error) {
	var e E
	rest, err := ev.input.Decode(src, &e)
	if err != nil {
		return nil, err
	}
	ev.Push(f, e)
	return rest, nil
}

func (ev *Event[E, R]) hasSinks() bool { return len(ev.sinks) > 0 }
