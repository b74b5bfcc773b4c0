package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage/wal"
	"github.com/heddle-stream/heddle/txn"
)

// The kinds of the log's records. Each begins with the number of the first event of
// a batch and that of its events.
const (
	recordBatch   = 'B' // the events
	recordView    = 'V' // how the batch before went, see txn.View
	recordEffects = 'W' // what a batch did, instead of its events

	batchMax = 1 << 20 // events, which is also the engine's limit
)

// Logged is a batch that the log has. Its memory is its own.
type Logged struct {
	First  int // number of its first event in the run
	Events int
	View   []byte // how it went, nil if that is not known

	kind    byte
	payload []byte
	where   string
}

// Done reports whether the log has what the batch did, and not what its events were.
func (l *Logged) Done() bool { return l.kind == recordEffects }

func (l *Logged) corrupt(what string) error {
	return &blocks.CorruptError{File: l.where, What: fmt.Sprintf("batch from event %d: %s", l.First, what)}
}

// parse reads a record. The batch refers to its memory.
func (d *Dir) parse(r wal.Record) (*Logged, error) {
	l := &Logged{kind: r.Kind, where: path.Join(d.path, logName)}
	first, used := binary.Uvarint(r.Payload)
	n, more := binary.Uvarint(r.Payload[max(0, used):])
	if used <= 0 || more <= 0 || n > batchMax {
		return nil, &blocks.CorruptError{File: l.where, What: "a batch without its numbers"}
	}
	l.First, l.Events = int(first), int(n)
	if l.kind != recordBatch && l.kind != recordView && l.kind != recordEffects {
		return nil, l.corrupt(fmt.Sprintf("a record of kind %q", l.kind))
	}
	l.payload = r.Payload[used+more:]
	return l, nil
}

// Next returns the next batch behind the checkpoint, and io.EOF after the last.
func (d *Dir) Next() (*Logged, error) {
	if d.replay == nil && !d.read {
		r, err := d.log.Reader(d.m.Record)
		if err != nil {
			return nil, err
		}
		d.replay, d.read = r, true
	}
	l := d.ahead
	d.ahead = nil
	for l == nil || l.kind == recordView { // a view without its batch is of one in the checkpoint
		var err error
		if l, err = d.record(); err != nil {
			return nil, err
		}
	}
	// Its view stands before the next batch, if the run came so far.
	switch next, err := d.record(); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, err
	case next.kind == recordView && next.First == l.First:
		l.View = next.payload
	default:
		d.ahead = next
	}
	return l, nil
}

// record reads a record. At the end of the log it closes the reader, before anything
// is appended, which that would meet.
func (d *Dir) record() (*Logged, error) {
	if d.replay == nil {
		return nil, io.EOF
	}
	r, err := d.replay.Next()
	if errors.Is(err, io.EOF) {
		err = errors.Join(err, d.replay.Close())
		d.replay = nil
	}
	if err != nil {
		return nil, err
	}
	l, err := d.parse(r)
	if err == nil {
		l.payload = slices.Clone(l.payload) // the reader uses its memory again
	}
	return l, err
}

// measure finds where the log ends.
func (d *Dir) measure() (err error) {
	d.end = d.m.Done
	r, err := d.log.Reader(d.m.Record)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l, err := d.parse(record)
		if err != nil {
			return err
		}
		d.bytes += int64(len(record.Payload))
		if l.kind == recordView {
			continue
		}
		if l.First != d.end {
			return l.corrupt(fmt.Sprintf("one from event %d is expected", d.end))
		}
		d.end += l.Events
	}
}

// Push pushes the events of a batch that is not done, and what the feed had to tell
// besides.
func (l *Logged) Push(f *txn.Feed) error {
	rest := l.payload
	for range l.Events {
		typ, used := binary.Uvarint(rest)
		if used <= 0 {
			return l.corrupt("an event without its type")
		}
		var err error
		if rest, err = f.PushEncoded(int(typ), rest[used:]); err != nil {
			return l.corrupt(err.Error())
		}
	}
	if len(rest) != 0 {
		if err := f.Tell(rest); err != nil {
			return l.corrupt(err.Error())
		}
	}
	return nil
}

// begin starts a record in the buffer.
func (d *Dir) begin(first, events int) {
	d.buf = binary.AppendUvarint(d.buf[:0], uint64(first))
	d.buf = binary.AppendUvarint(d.buf, uint64(events))
}

func (d *Dir) append(kind byte) error {
	_, err := d.log.Append(kind, d.buf)
	d.bytes += int64(len(d.buf))
	return err
}

// View adds how a batch of so many events went. It is written with the next Commit:
// what is lost without it is time.
func (d *Dir) View(first, events int, view []byte) error {
	d.begin(first, events)
	d.buf = append(d.buf, view...)
	return d.append(recordView)
}

// Commit logs the events [from, to) of the feed, the first of which is event number
// first of the run. When it returns, they survive a crash. After an error the
// directory takes nothing more.
func (d *Dir) Commit(first int, f *txn.Feed, from, to int) error {
	d.begin(first, to-from)
	for i := from; i < to; i++ {
		d.buf = f.AppendEvent(binary.AppendUvarint(d.buf, uint64(f.EventType(i))), i)
	}
	if f.Told() {
		var err error
		if d.buf, err = f.AppendTold(d.buf); err != nil {
			return err
		}
	}
	return d.commit(recordBatch, first+to-from)
}

// CommitEffects logs what a batch did instead of its events: see AppendEffects.
func (d *Dir) CommitEffects(first, events int, effects []byte) error {
	d.begin(first, events)
	d.buf = append(d.buf, effects...)
	return d.commit(recordEffects, first+events)
}

func (d *Dir) commit(kind byte, end int) error {
	if err := d.append(kind); err != nil {
		return err
	}
	if err := d.log.Commit(); err != nil {
		return err
	}
	d.end = end
	return nil
}
