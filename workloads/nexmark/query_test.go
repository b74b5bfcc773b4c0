package nexmark

import (
	"context"
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// runQuery runs a query and compares its results with its model.
func runQuery(t *testing.T, q Query, c Config, o job.Options) (job.Metrics, string) {
	t.Helper()
	c.Keep = true
	r, err := q.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := job.Run(context.Background(), r.Plan, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Verify(); err != nil {
		t.Errorf("%s, %+v: %v", q.Name, c, err)
	}
	n, hash := r.Results()
	return m, fmt.Sprint(n, hash)
}

func TestQueriesLikeTheirModels(t *testing.T) {
	for _, q := range Queries() {
		for _, adversarial := range []bool{false, true} {
			t.Run(fmt.Sprint(q.Name, adversarial), func(t *testing.T) {
				t.Parallel()
				c := Config{Events: 60_000, Rate: 1000, Seed: 3, Adversarial: adversarial}
				runQuery(t, q, c, job.Options{Workers: 2})
			})
		}
	}
}

// The results are the same whatever passes there are, and however large batches and memory
// are.
func TestQueriesUnderEveryPlan(t *testing.T) {
	for _, q := range Queries() {
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			c := Config{Events: 8_000, Rate: 200, Seed: 5, Adversarial: true}
			_, want := runQuery(t, q, c, job.Options{Workers: 1})
			all := job.Passes()[1:] // without the defaults, which say no more than is said below
			for subset := range 1 << len(all) {
				if testing.Short() && subset%5 != 0 {
					continue
				}
				passes := []plan.Pass{job.Batch([]int{100, 1777, 4096, 8000}[subset%4])}
				for i, p := range all {
					if subset>>i&1 > 0 {
						passes = append(passes, p)
					}
				}
				if _, err := plan.NewPolicy(passes...); err != nil {
					continue // one needs what another one sets
				}
				o := job.Options{Workers: 1 + subset%3, Passes: passes, Env: operators.Env{MemoryLimit: 1 << 20, FS: &vfs.Memory{}, Dir: "w"}}
				r, err := q.New(c)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := job.Run(context.Background(), r.Plan, o); err != nil {
					t.Fatalf("passes %b: %v", subset, err)
				}
				if n, hash := r.Results(); fmt.Sprint(n, hash) != want {
					t.Errorf("passes %b: %d results, hash %s; want %s", subset, n, hash, want)
				}
			}
		})
	}
}
