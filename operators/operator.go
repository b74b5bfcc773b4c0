package operators

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
)

// operator is what a vertex computes.
type operator interface {
	// build makes what one partition of a vertex runs. The output goes to an inlet of the
	// type that the operator puts out, nil for a sink; it returns an inlet for each input.
	build(t *task, out any) []any
	// tee, relay and exchange know the type of the output.
	tee(outs []any) any
	relay() any
	exchange(how mailing) exchange
	// hashOf returns the function that hashes the key of an item at an input, or nil.
	hashOf(port int) any
	// byTime reports that output is to go on in the order of its times: of an operator
	// with a state for each partition.
	byTime() bool
}

// emits is the part of an operator that depends on the type of its output alone.
type emits[T any] struct{}

func (emits[T]) tee(outs []any) any {
	var t tee[T]
	for _, out := range outs {
		t = append(t, out.(inlet[T]))
	}
	return t
}
func (emits[T]) exchange(how mailing) exchange { return newMail[T](how) }
func (emits[T]) hashOf(int) any                { return nil }
func (emits[T]) byTime() bool                  { return false }

// task is one partition of a stage.
type task struct {
	partition, partitions int
	stage                 *stage
	vertex                plan.ID // that is built
	heads                 []head
	steps                 []func(watermark int64) error // at the end of a batch, the last vertex first
}

// head is an inlet that gets what an exchange has for the task.
type head struct {
	from exchange
	to   any
}

// atEnd registers what is to be done after the items of a batch.
func (t *task) atEnd(step func(watermark int64) error) { t.steps = append(t.steps, step) }

// counters are those of the vertex that is built.
func (t *task) counters() *Counters { return t.stage.e.counters[t.vertex] }

// Counters tell what a vertex did. They are added to by several goroutines, a batch at a
// time.
type Counters struct {
	In, Out atomic.Int64 // items
	Late    atomic.Int64 // items that came after their windows
	Far     atomic.Int64 // items too far in the future
	Fires   atomic.Int64 // windows of all keys, or of one
}

// Env is what the execution of a job has.
type Env struct {
	// MemoryLimit is how many bytes contents of windows may take in memory, all together;
	// 0 for 1 GiB.
	MemoryLimit int64
	// FS and Dir say where they go otherwise, and FS where output goes; the default is the disk and
	// its directory for temporary files.
	FS  vfs.FS
	Dir string
	// Keep makes files in Dir, and what the job remembers, stay for another process: see [Exec.Save]. All
	// that operators remember has to be of plain types then.
	Keep bool
	// Stores makes what keeps contents of windows: nil for Heddle's own stores.
	Stores window.Stores
	// Now returns the processing time, in ns since 1970; the default is the clock of the machine.
	Now func() int64
}

const memoryDefault = 1 << 30

func (e *Env) setDefaults() {
	if e.MemoryLimit == 0 {
		e.MemoryLimit = memoryDefault
	}
	if e.FS == nil {
		e.FS = vfs.Disk{}
	}
	if e.Stores == nil {
		e.Stores = window.Own{}
	}
	if e.Now == nil {
		e.Now = func() int64 { return clock.Today().UnixNano() }
	}
}

// PanicError tells of a function of the user that panicked.
type PanicError struct {
	Vertices []plan.ID // the function is of one of them, which run in one task
	Value    any
	Stack    []byte
}

func (e *PanicError) Error() string {
	names := make([]string, len(e.Vertices))
	for i, id := range e.Vertices {
		names[i] = string(id)
	}
	return fmt.Sprintf("in %s: panic: %v", oneOf(names), e.Value)
}

// oneOf names vertices of which one is meant.
func oneOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return "one of " + strings.Join(names, ", ")
}

// called runs a function of the user for some vertices, makes an error of its panic, and tells where
// an error is from.
func called(vertices []plan.Vertex, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			failed := &PanicError{Value: p, Stack: debug.Stack()}
			for _, v := range vertices {
				failed.Vertices = append(failed.Vertices, v.ID)
			}
			err = failed
		}
	}()
	if err = f(); err != nil {
		var names []string
		for _, v := range vertices {
			names = append(names, string(v.ID))
		}
		err = fmt.Errorf("in %s: %w", oneOf(names), err)
	}
	return err
}
