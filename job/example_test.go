package job_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
)

// Visit is an event of the examples.
type Visit struct {
	Page string
	At   int64 // ns
}

func visits() []Visit {
	var all []Visit
	for i, page := range []string{"/", "/docs", "/", "/", "/docs", "/blog"} {
		all = append(all, Visit{page, int64(i) * int64(20*time.Second)})
	}
	return all
}

type tally struct{ N int64 }

// perMinute counts the visits of each page in each minute.
func perMinute(events []Visit) *plan.Graph {
	j := operators.New("visits")
	in := operators.From(j, "visits", operators.Slice(events, func(v *Visit) int64 { return v.At }))
	byPage := operators.KeyBy(in, func(v *Visit) string { return v.Page })
	counts := operators.Aggregate(byPage, "count", operators.Tumbling(time.Minute), operators.Aggregator[Visit, tally]{
		Add:   func(acc *tally, _ *Visit) { acc.N++ },
		Merge: func(into, from *tally) { into.N += from.N },
	}, func(page string, w operators.Span, acc *tally) string {
		return fmt.Sprintf("minute %d: %s %d", w.Start/int64(time.Minute), page, acc.N)
	})
	operators.Each(counts, "print", func(line *string, _ int64) error {
		_, err := fmt.Fprintln(os.Stdout, *line)
		return err
	})
	g, err := j.Plan()
	if err != nil {
		panic(err)
	}
	return g
}

// Count visits by page and minute.
func ExampleRun() {
	if _, err := job.Run(context.Background(), perMinute(visits()), job.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// minute 0: / 2
	// minute 0: /docs 1
	// minute 1: / 1
	// minute 1: /blog 1
	// minute 1: /docs 1
}

// wide is a pass of one's own: twice as many partitions where work is keyed.
type wide struct{}

func (wide) Name() string         { return "wide" }
func (wide) Needs() []plan.PropID { return []plan.PropID{plan.Parallelism} }
func (wide) Sets() []plan.PropID  { return []plan.PropID{plan.Parallelism} }
func (wide) Annotate(v *plan.View) error {
	for _, x := range v.Vertices() {
		if x.Kind != plan.Window {
			continue
		}
		if err := plan.Parallelism.Fix(v, x.ID, 2*plan.Parallelism.Of(v.Graph, x.ID)); err != nil {
			return err
		}
	}
	return nil
}

// A pass of one's own decides how a job is executed, and the plan remembers it.
func ExampleRun_ownPass() {
	m, err := job.Run(context.Background(), perMinute(visits()[:1]), job.Options{Passes: append(job.Passes(), wide{})})
	if err == nil {
		err = m.Plan.Explain(os.Stdout, "count")
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// minute 0: / 1
	// count is a window
	// access = aligned-rmw, set by pass access
	// memory = 1, set by pass memory
	// parallelism = 16, fixed by pass wide
}
