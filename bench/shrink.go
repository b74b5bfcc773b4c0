package bench

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// encoded is an event in its byte form.
type encoded struct {
	typ   int
	bytes []byte
}

// Failing is a run that fails, with the events that make it fail.
type Failing struct {
	Err      error // of the last run that failed
	Events   int   // of the run that failed first, up to where it did
	Runs     int   // tried since
	spec     Spec
	mu       sync.Mutex // the source may be read by a goroutine that outlives the run
	sequence []encoded
}

// Left returns how many events are left.
func (f *Failing) Left() int { return len(f.sequence) }

// Failure runs a program with the serial model beside, and returns how it fails, or nil
// when it does not.
func Failure(ctx context.Context, s Spec) (*Failing, error) {
	f := &Failing{spec: s}
	f.spec.Options.Verify = true
	run := f.spec
	run.Wrap = func(in *program.Instance) error {
		if s.Wrap != nil {
			if err := s.Wrap(in); err != nil {
				return err
			}
		}
		in.Source = &keeping{in.Source, f}
		return nil
	}
	_, err := Run(ctx, run)
	if kindOf(err) == "" {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Err = err
	if at, ok := eventOf(err); ok && at < len(f.sequence) {
		f.sequence = f.sequence[:at+1]
	}
	f.Events = len(f.sequence)
	return f, nil
}

// keeping is a source whose events are kept.
type keeping struct {
	txn.Source
	f *Failing
}

// Fill implements [txn.Source].
func (k *keeping) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	had := f.Len()
	err := k.Source.Fill(ctx, f, limit)
	k.f.mu.Lock()
	defer k.f.mu.Unlock()
	for i := had; i < f.Len(); i++ {
		k.f.sequence = append(k.f.sequence, encoded{f.EventType(i), f.AppendEvent(nil, i)})
	}
	return err
}

// kindOf tells failures that a smaller run may show as well from each other and from
// other errors, for which it is "".
func kindOf(err error) string {
	var difference *engine.DifferenceError
	var panicked *engine.PanicError
	var check *CheckError
	switch {
	case errors.As(err, &difference):
		return "difference"
	case errors.As(err, &panicked):
		return "panic of " + panicked.What + " " + panicked.Name
	case errors.As(err, &check):
		return "check"
	}
	return ""
}

// eventOf returns the event at which a run failed, if it did at one.
func eventOf(err error) (int, bool) {
	var difference *engine.DifferenceError
	var panicked *engine.PanicError
	switch {
	case errors.As(err, &difference):
		return difference.Event, difference.Event >= 0
	case errors.As(err, &panicked):
		return panicked.Event, true
	}
	return 0, false
}

// Shrink takes events away as long as the run fails the same way without them: by
// halves, quarters and so on, as in Zeller and Hildebrandt's ddmin. It ends early, with
// what it has, when the context does. A run that fails by chance is tried several times.
func (f *Failing) Shrink(ctx context.Context, step func(left int)) {
	for size := len(f.sequence) / 2; size > 0 && ctx.Err() == nil; {
		shrunk := false
		for at := 0; at < len(f.sequence) && ctx.Err() == nil; {
			end := min(at+size, len(f.sequence))
			less := append(append([]encoded(nil), f.sequence[:at]...), f.sequence[end:]...)
			if f.fails(ctx, less) {
				f.sequence, shrunk = less, true
				step(len(less))
			} else {
				at = end
			}
		}
		if !shrunk || size > len(f.sequence)/2 {
			size /= 2
		}
	}
}

// fails reports whether the run fails the same way with some of the events.
func (f *Failing) fails(ctx context.Context, events []encoded) bool {
	const tries = 3
	for range tries {
		s := f.spec
		s.Wrap = func(in *program.Instance) error {
			in.Source, in.Notes = replaying(events), nil
			return nil
		}
		f.Runs++
		_, err := Run(ctx, s)
		if kindOf(err) == kindOf(f.Err) {
			f.Err = err
			return true
		}
	}
	return false
}

// Source returns what is left as a source.
func (f *Failing) Source() txn.Source { return replaying(f.sequence) }

func replaying(events []encoded) txn.Source {
	return txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range min(limit, len(events)) {
			if _, err := f.PushEncoded(events[0].typ, events[0].bytes); err != nil {
				return err
			}
			events = events[1:]
		}
		if len(events) == 0 {
			return io.EOF
		}
		return nil
	})
}
