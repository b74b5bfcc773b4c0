package auction

import (
	"context"
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/job"
)

// The job comes to what the model comes to, whatever the strategy, the batches and the workers
// are; and it does not run idle.
func TestHouseLikeTheModel(t *testing.T) {
	for _, stream := range []string{"inorder", "adversarial"} {
		want := ""
		for i, strategy := range []string{"serial", "ns-op-eager", "auto", "lock", "tstream"} {
			c, err := Program.Config(map[string]string{"rate": "2000", "stream": stream})
			if err != nil {
				t.Fatal(err)
			}
			c.Events, c.Seed = 20_000, 3
			in, err := open("house", c, job.Wanted{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			passes := append(job.Passes(), job.Batch([]int{4096, 100, 1000, 777, 20_000}[i]), job.Strategy(strategy))
			if _, err := job.Run(context.Background(), in.Plan, job.Options{Workers: 1 + i%3, Passes: passes}); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Verify(); err != nil {
				t.Fatalf("%s, %s: %v", stream, strategy, err)
			}
			n, hash := in.Results()
			if got := fmt.Sprint(n, hash); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s, %s: %s, want %s", stream, strategy, got, want)
			}
		}
	}
}

// Enough happens in the stream: all reasons occur, and there are sales.
func TestHouseIsBusy(t *testing.T) {
	c, err := Program.Config(map[string]string{"rate": "2000"})
	if err != nil {
		t.Fatal(err)
	}
	c.Events = 20_000
	in := sourceOf(c)
	m := newModel(eventsOf(in), in.Disorder)
	why, sold := map[string]int{}, 0
	for _, r := range m.results {
		if why[r.Why]++; r.Kind == Close && r.Person != 0 {
			sold++
		}
	}
	for _, reason := range []string{"", "missing", "too low", "no account", "insufficient funds", "nothing to sell"} {
		if why[reason] < 20 {
			t.Errorf("%q happens %d times", reason, why[reason])
		}
	}
	if sold < 100 {
		t.Errorf("%d sales", sold)
	}
}
