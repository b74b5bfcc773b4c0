package txn

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-stream/heddle/storage/keyed"
)

// Verdict is what an operation says about its transaction: [OK], or why it
// must abort.
type Verdict uint16

// The verdicts that every application has.
const (
	OK      Verdict = iota // go on
	Missing                // the key holds no value, and the operation needs one
	Exists                 // the key holds a value already, and an insert needs none

	// Panicked is the verdict of an operation whose function panicked. A user
	// function cannot return it.
	Panicked Verdict = 0xffff
)

// App is one transactional application with its state. Declare everything,
// look at Err, then hand it to an engine. Declaration is for one goroutine.
type App struct {
	name    string
	reasons []string
	tables  []tableRuntime
	kinds   []*kind
	events  []eventRuntime
	names   map[string]string // "kind name" -> where it was declared
	faults  []error
	bound   bool
	timed   []string // windows that go by event time
	logics  []logic
	feeds   int

	rejectable bool                   // events that plans reject are outcomes
	budget     *keyed.Budget          // of memory, when rows may be in logs
	openLog    func(table int) RowLog // see LimitMemory
}

// New returns an application without tables.
func New(name string) *App {
	a := &App{name: name, names: map[string]string{}, reasons: []string{"", "missing", "exists"}}
	onNew.Lock()
	defer onNew.Unlock()
	for _, made := range onNew.list {
		(*made)(a)
	}
	return a
}

var onNew struct {
	sync.Mutex
	list []*func(*App)
}

// OnNew has made called with each application that New makes, until stop is called. It is
// for those who run programs which make their applications themselves.
func OnNew(made func(*App)) (stop func()) {
	onNew.Lock()
	defer onNew.Unlock()
	onNew.list = append(onNew.list, &made)
	return func() {
		onNew.Lock()
		defer onNew.Unlock()
		onNew.list = slices.DeleteFunc(onNew.list, func(f *func(*App)) bool { return f == &made })
	}
}

// Name returns the name given to New.
func (a *App) Name() string { return a.name }

// Reason declares why a transaction may abort and returns the verdict for it.
func (a *App) Reason(text string) Verdict {
	where := caller()
	if text == "" {
		a.fault(where, "a reason needs a text")
	}
	if len(a.reasons) >= int(Rejected) {
		a.fault(where, "more than %d reasons", int(Rejected))
		return Missing
	}
	a.reasons = append(a.reasons, text)
	return Verdict(len(a.reasons) - 1)
}

// ReasonText returns the text of a verdict, "" for OK.
func (a *App) ReasonText(v Verdict) string {
	switch v {
	case Panicked:
		return "panic"
	case Rejected:
		return "rejected"
	}
	if int(v) >= len(a.reasons) {
		return fmt.Sprintf("verdict %d, which this application did not declare", v)
	}
	return a.reasons[v]
}

// Err returns all mistakes in the declaration, each with file and line, or nil.
func (a *App) Err() error {
	faults := a.faults
	if len(a.events) == 0 {
		faults = append(faults[:len(faults):len(faults)], fmt.Errorf("application %q has no event type: declare one with txn.On", a.name))
	}
	if len(a.timed) > 0 {
		for _, ev := range a.events {
			if !ev.hasTime() {
				faults = append(faults[:len(faults):len(faults)], fmt.Errorf("event %q has no time, and window %q goes by time: give txn.EventTime", ev.Name(), a.timed[0]))
			}
		}
	}
	return errors.Join(faults...)
}

func (a *App) fault(where, format string, args ...any) {
	a.faults = append(a.faults, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// declare checks a name; what is "table", "operation", "read", "logic" or
// "event".
func (a *App) declare(what, name, where string) {
	if name == "" {
		a.fault(where, "%s without a name", what)
		return
	}
	if a.bound {
		a.fault(where, "%s %q declared after the application started", what, name)
	}
	key := what + " " + name
	if first, twice := a.names[key]; twice {
		a.fault(where, "%s %q is declared already at %s", what, name, first)
		return
	}
	a.names[key] = where
}

// caller returns the file and line of the declaration: the caller of the
// exported function that calls it.
func caller() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "unknown place"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// The kind of an access names its operation or read handle and says in its
// upper bits how it takes part in chains.
const (
	kindRead    = 0x8000 // a read handle, not an operation
	kindPassive = 0x4000 // an operation that writes nothing
	kindStart   = 0x2000 // sees the state before its transaction
	kindRange   = 0x1000 // stands for several rows
	kindDelta   = 0x0800 // changes its row without seeing it
	kindLate    = 0x0400 // its row is known only when it runs
	kindIndex   = 0x03ff
)

// kind is one declared operation or read handle.
type kind struct {
	name  string
	table tableRuntime
	op    operation // nil for a read handle
	rng   rangeRead // of a range, else nil
	late  late      // of a computed key, else nil
	win   windowed  // of a window, else nil
	span  Span

	inForce bool // of a window, with what is in force when it begins
}

func (a *App) addKind(k *kind, where string) uint16 {
	if len(a.kinds) > kindIndex {
		a.fault(where, "more than %d operations and reads", kindIndex+1)
		return 0
	}
	a.kinds = append(a.kinds, k)
	return uint16(len(a.kinds) - 1)
}

// operation is an operation of any type, as the engine runs it.
type operation interface {
	// run executes the access on the versions of the batch.
	run(w *Worker, id uint32) Verdict
	// undo takes back a call of a serial run, and rowOf returns its row.
	undo(at int)
	rowOf(at int) uint32
	boxed(f *Frame, arg any, before any, present bool) (after any, stays bool, v Verdict)
	// reset empties the arguments that a worker's plan recorded.
	reset(worker int)
	// resetCalls forgets the calls of a serial run.
	resetCalls()
	bind(workers int)
}

type rangeRead interface {
	reset(worker int)
	bind(workers int)
	bounds(worker int, arg uint32) (lo, hi any)
	expand(worker int, arg uint32, dst []uint32) []uint32
}
