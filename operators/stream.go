package operators

import (
	"fmt"

	"github.com/heddle-stream/heddle/plan"
)

// Job is a job that is being described. It is built by one goroutine.
type Job struct {
	name string
	b    *plan.Builder
	errs []error
}

// New begins a job.
func New(name string) *Job { return &Job{name: name, b: plan.NewBuilder(name)} }

// Plan returns the job as it was described, or what is wrong with it.
func (j *Job) Plan() (*plan.Graph, error) {
	if len(j.errs) > 0 {
		return nil, fmt.Errorf("job %s: %w", j.name, j.errs[0])
	}
	return j.b.Build()
}

func (j *Job) fail(name string, err error) {
	if err != nil {
		j.errs = append(j.errs, fmt.Errorf("%s: %w", name, err))
	}
}

// sameJob makes a job fail that has streams of another one.
func (j *Job) sameJob(name string, other *Job) {
	if other != j {
		j.fail(name, fmt.Errorf("a stream of job %s, and one of job %s", j.name, other.name))
	}
}

// Stream is the output of a vertex, of items of type T.
type Stream[T any] struct {
	job *Job
	id  plan.ID
}

// add makes a vertex with one input.
func add[T, U any](s Stream[T], name string, kind plan.Kind, pattern plan.Pattern, op operator) Stream[U] {
	s.job.b.Vertex(plan.ID(name), kind, op)
	s.job.b.Edge(s.id, plan.ID(name), 0, pattern)
	return Stream[U]{s.job, plan.ID(name)}
}

// Map makes one item of each. It keeps the event time.
func Map[T, U any](s Stream[T], name string, f func(item *T) U) Stream[U] {
	return add[T, U](s, name, plan.Map, plan.OneToOne, &mapOp[T, U]{f: f})
}

// Filter hands on the items for which keep returns true.
func Filter[T any](s Stream[T], name string, keep func(item *T) bool) Stream[T] {
	return add[T, T](s, name, plan.Map, plan.OneToOne, &filterOp[T]{keep: keep})
}

// FlatMap makes any number of items of each. They have its event time.
func FlatMap[T, U any](s Stream[T], name string, f func(item *T, emit func(U))) Stream[U] {
	return add[T, U](s, name, plan.Map, plan.OneToOne, &flatMapOp[T, U]{f: f})
}

// Union hands on the items of several streams in the order of their event times, those of one
// time by the order of the streams and as they come there.
func Union[T any](name string, first Stream[T], others ...Stream[T]) Stream[T] {
	j := first.job
	j.b.Vertex(plan.ID(name), plan.Map, &unionOp[T]{inputs: 1 + len(others)})
	for port, s := range append([]Stream[T]{first}, others...) {
		j.sameJob(name, s.job)
		j.b.Edge(s.id, plan.ID(name), port, plan.Shuffle)
	}
	return Stream[T]{j, plan.ID(name)}
}

// Keyed is a stream of which items with equal keys belong together.
type Keyed[K comparable, T any] struct {
	Stream[T]
	key func(item *T) K
	all bool // of one key
}

// KeyBy says what the key of an item is. Keys may be of any plain type: whole numbers, strings,
// arrays and structs of such.
func KeyBy[K comparable, T any](s Stream[T], key func(item *T) K) Keyed[K, T] {
	return Keyed[K, T]{s, key, false}
}

// All puts all items under one key.
func All[T any](s Stream[T]) Keyed[uint64, T] {
	return Keyed[uint64, T]{s, func(*T) uint64 { return 0 }, true}
}
