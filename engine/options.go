package engine

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/heddle-stream/heddle/schedule"
)

// Options of a run. The zero value works.
type Options struct {
	// Workers is the number of goroutines that execute, at most 64. Default: the
	// number of processors that Go uses.
	Workers int
	// Strategy is a name from schedule.Strategies. Default: auto.
	Strategy string
	// Batch is the largest number of events in a batch. Default: BatchDefault.
	Batch int
	// Linger is how long a batch waits for more events after its first. Default:
	// not at all; a batch is closed when the source has nothing for now.
	Linger time.Duration
	// HashResults computes Metrics.ResultsHash, at the cost of encoding each result.
	HashResults bool
	// Verify runs the serial model beside and ends the run at the first difference.
	Verify bool
	// Listener is told what happens. Its functions are called by one goroutine.
	Listener EventListener
	// NoLatency leaves the latency histogram out.
	NoLatency bool

	// Tests drive the workers of a run by themselves, in an order of theirs.
	drive func(*schedule.Run)
	grain schedule.Grain
}

// EventListener is told what happens in a run. Nil functions are not called.
type EventListener struct {
	// BatchDone is called after a batch is installed and its results delivered.
	// Tables may be read.
	BatchDone func(BatchInfo)
}

// BatchInfo describes a finished batch.
type BatchInfo struct {
	Number    int // from 0
	Events    int
	Committed int
	Aborted   int
	Strategy  string
	Nanos     int64 // from the first plan to the last result
	Redone    int   // transactions run again because of aborts or computed keys
	Moved     int   // computed keys that were not the ones foreseen
}

// BatchDefault is the largest batch unless told otherwise. What a batch of this
// size works on fits a core's second cache; larger ones are slower and, of
// course, later.
const BatchDefault = 4096

const (
	batchMax   = 1 << 20
	workersMax = 64
)

func (o *Options) setDefaults() {
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), workersMax)
	}
	if o.Strategy == "" {
		o.Strategy = "auto"
	}
	if o.Batch == 0 {
		o.Batch = BatchDefault
	}
}

// validate reports all faults at once.
func (o *Options) validate() (schedule.Strategy, error) {
	var errs []error
	if o.Workers < 1 || o.Workers > workersMax {
		errs = append(errs, fmt.Errorf("workers %d: 1 to %d are allowed", o.Workers, workersMax))
	}
	if o.Batch < 1 || o.Batch > batchMax {
		errs = append(errs, fmt.Errorf("batch %d: 1 to %d are allowed", o.Batch, batchMax))
	}
	if o.Linger < 0 {
		errs = append(errs, fmt.Errorf("linger %v: must not be negative", o.Linger))
	}
	s, err := schedule.Parse(o.Strategy)
	if err != nil {
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// PanicError tells that a user function panicked where a serial run would have.
type PanicError struct {
	Event int    // number of the event in the run, from 0
	What  string // "plan", "operation" or "result"
	Name  string // of the operation, or of the event type
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("event %d: %s %q panicked: %v; all events before it are committed", e.Event, e.What, e.Name, e.Value)
}

// DifferenceError tells that a run differs from the serial model.
type DifferenceError struct {
	Event int // number of the event in the run, or -1 for the final state
	What  string
}

func (e *DifferenceError) Error() string {
	if e.Event < 0 {
		return "final state differs from the serial model: " + e.What
	}
	return fmt.Sprintf("event %d differs from the serial model: %s", e.Event, e.What)
}

// Validate reports everything that is wrong with the options, or nil.
func (o Options) Validate() error {
	o.setDefaults()
	_, err := o.validate()
	return err
}
