package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// Options of a run. The zero value works.
type Options struct {
	// Workers is the number of goroutines that execute, at most 64. Default: the
	// number of processors that Go uses.
	Workers int
	// WorkersMax is up to how many [Session.SetWorkers] may make. Default: Workers
	WorkersMax int
	// Strategy is a name from schedule.Strategies. Default: auto.
	Strategy string
	// Batch is the largest number of events in a batch. Default: BatchDefault, and up to
	// sixteen times as many while batches have to wait for the log, unless there is a Rate or
	// a Linger.
	Batch int
	// Linger is how long a batch waits for more events after its first. Default:
	// not at all; a batch is closed when the source has nothing for now.
	Linger time.Duration
	// Rate is how many events arrive per second, whether the engine keeps up or not;
	// their latency counts from their arrival. Default: the next events arrive when
	// the engine wants them.
	Rate float64
	// LatencyTarget is what the latency of 99 in 100 events should stay below. The
	// size of batches is chosen for it, Batch being the largest. Default: none.
	LatencyTarget time.Duration
	// State is a directory that keeps what the run has done, so that the next run with
	// it goes on where this one stopped, however it did. The application has to be the
	// same and, in its initial state, the source deliver the same events from the
	// beginning. Default: nothing is kept.
	State string
	// Durability says what the log has, if there is State. Default: Views.
	Durability Scheme
	// Savepoint keeps the state at the end of the run under a name, as a file of its own
	// in the directory savepoints of State, until somebody removes it. Default: none.
	Savepoint string
	// From is the file of a savepoint with which a new State begins: its events are done.
	// Default: the state begins as the application was declared.
	From string
	// Checkpoints says when they are written. Default: see checkpoint.Options.
	Checkpoints checkpoint.Options
	// Identity is what two runs with one State must have in common, for messages, too.
	Identity map[string]string
	// Output is a file that gets each result as a line of JSON, in order; with State
	// without a gap or a double after any crash. Default: none.
	Output string
	// DeadLetters is a file that gets a line of JSON for each thing that cannot be an
	// event, as the source or a plan says, with State exactly once as well. Default: none;
	// what a plan rejects stops the run, and what a source discards is only counted.
	DeadLetters string
	// FS is where State and Output are. Default: the disk.
	FS vfs.FS
	// MemoryLimit is about how many bytes of memory the process may take. Half of them are for
	// rows of tables; those that do not fit are kept in files of State, or of the directory for
	// temporary files, which nobody finds after a crash. It should stand before rows are
	// loaded, see package storage/spill; and app.Close frees the files. Default: all rows are
	// in memory.
	MemoryLimit int64
	// HashResults computes Metrics.ResultsHash, at the cost of encoding each result.
	HashResults bool
	// Digests gives the listener a digest of each event's outcome and result. It needs
	// HashResults.
	Digests bool
	// Start is where the run stands that the application's state is of; events are
	// numbered from there. For replays. Default: at the beginning.
	Start checkpoint.Point
	// Verify runs the serial model beside and ends the run at the first difference.
	Verify bool
	// Listener is told what happens. Its functions are called by one goroutine.
	Listener EventListener
	// NoLatency leaves the latency histogram out.
	NoLatency bool

	// Tests drive the workers of a run by themselves, in an order of theirs.
	drive func(*schedule.Run)
	grain schedule.Grain

	epochs bool // the size of batches follows the log
}

// EventListener is told what happens in a run. Nil functions are not called.
type EventListener struct {
	// BatchDone is called after a batch is installed and its results delivered.
	// Tables may be read.
	BatchDone func(BatchInfo)
	// Decided is called under strategy auto when another strategy is chosen, and at
	// the end, with what led to the choice that ends and what came of it.
	Decided func(Decision)
}

// Decision is a choice of strategy auto with its reasons and its consequences.
type Decision struct {
	Batch   int // the first one
	Batches int // under this choice
	Choice  schedule.Choice
	Load    schedule.Load
	Graph   tpg.Stats           // of the batch whose shape was taken last, zero before there was one
	Costs   []txn.OperationCost // of the operations sampled under this choice
	TookNs  float64             // per event
	Stalls  int64               // units that had to wait, under this choice
	Steals  int64
	Redone  int
	Events  int
}

// BatchInfo describes a finished batch.
type BatchInfo struct {
	Number    int // from 0
	Events    int
	Committed int
	Aborted   int
	Discarded int // what became no event, and events that plans rejected
	Ops       int // operations listed by the plans
	Strategy  string
	Nanos     int64 // from the first plan to the last result
	Redone    int   // transactions run again because of aborts or computed keys
	Moved     int   // computed keys that were not the ones foreseen
	Stalls    int64 // units that had to wait for another one
	Steals    int64 // units taken from another worker

	// Digests are by event, if Options asked for them, valid during the call.
	Digests []uint32
	// After is where the run stands after the batch.
	After checkpoint.Point

	chosen bool  // by auto
	waited int64 // ns, for the log
}

// BatchDefault is the largest batch unless told otherwise. What a batch of this
// size works on fits a core's second cache; larger ones are slower and, of
// course, later.
const BatchDefault = 4096

const (
	// BatchMax is the most events in a batch.
	BatchMax = 1 << 20
	// WorkersMax is the most workers of a run.
	WorkersMax = 64
	rateMin    = 0.001
	rateMax    = 1e9

	// MemoryLimitMin is the smallest memory limit: the program itself takes as much.
	MemoryLimitMin = 32 << 20
)

func (o *Options) setDefaults() {
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), WorkersMax)
	}
	o.WorkersMax = max(o.WorkersMax, o.Workers)
	if o.Durability == "" {
		o.Durability = Views
	}
	if o.FS == nil {
		o.FS = vfs.Disk{}
	}
	if o.Strategy == "" {
		o.Strategy = "auto"
	}
	if o.Batch == 0 {
		// Where events arrive at their own pace, a full batch is one that is late, and larger
		// ones would be later.
		own := o.Rate > 0 || o.Linger > 0
		o.Batch, o.epochs = BatchDefault, o.State != "" && o.Durability != NoLog && !own
	}
}

// validate reports all faults at once.
func (o *Options) validate() (schedule.Strategy, error) {
	var errs []error
	if o.Workers < 1 || o.WorkersMax > WorkersMax {
		errs = append(errs, fmt.Errorf("workers %d: 1 to %d are allowed", o.WorkersMax, WorkersMax))
	}
	if o.Batch < 1 || o.Batch > BatchMax {
		errs = append(errs, fmt.Errorf("batch %d: 1 to %d are allowed", o.Batch, BatchMax))
	}
	if o.Linger < 0 {
		errs = append(errs, fmt.Errorf("linger %v: must not be negative", o.Linger))
	}
	if o.LatencyTarget < 0 {
		errs = append(errs, fmt.Errorf("latency target %v: must not be negative", o.LatencyTarget))
	}
	if o.Rate != 0 && !(o.Rate >= rateMin && o.Rate <= rateMax) {
		errs = append(errs, fmt.Errorf("rate %v: 0, or %v to %v events per second are allowed", o.Rate, rateMin, rateMax))
	}
	if !slices.Contains(Schemes(), o.Durability) {
		errs = append(errs, fmt.Errorf("durability %q: %s", o.Durability, oneOf(Schemes())))
	}
	if o.State == "" && (o.Savepoint != "" || o.From != "") {
		errs = append(errs, errors.New("a savepoint needs a state directory"))
	}
	if o.Savepoint != "" {
		errs = append(errs, checkpoint.CheckSavepointName(o.Savepoint))
	}
	if o.MemoryLimit != 0 && o.MemoryLimit < MemoryLimitMin {
		errs = append(errs, fmt.Errorf("memory limit of %d bytes: %d, which is %d MiB, or more is allowed", o.MemoryLimit, MemoryLimitMin, MemoryLimitMin>>20))
	}
	if o.Start.Events > 0 && o.State != "" {
		errs = append(errs, errors.New("a run that starts behind the first event has no state directory"))
	}
	s, err := schedule.Parse(o.Strategy)
	if err != nil {
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// oneOf lists what is allowed.
func oneOf(schemes []Scheme) string {
	out := "one of"
	for i, s := range schemes {
		if i > 0 {
			out += ","
		}
		out += " " + string(s)
	}
	return out
}

// PanicError tells that a user function panicked where a serial run would have.
type PanicError struct {
	Event int    // number of the event in the run, from 0
	What  string // "plan", "operation" or "result"
	Name  string // of the operation, or of the event type
	Value any
	Stack []byte
}

// Unwrap returns the value if it is an error, such as txn.TimeError.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func (e *PanicError) Error() string {
	if rejected, ok := e.Value.(*txn.RejectedError); ok {
		return fmt.Sprintf("event %d: plan %q rejected it: %s; all events before it are committed", e.Event, e.Name, rejected.Reason)
	}
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
