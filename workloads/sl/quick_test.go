package sl

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
)

func TestQuick(t *testing.T) {
	keys := os.Getenv("K")
	if keys == "" {
		keys = "100000"
	}
	cx := os.Getenv("CX")
	if cx == "" {
		cx = "0s"
	}
	ev := 1000000
	if cx != "0s" {
		ev = 100000
	}
	vals := map[string]string{"keys": keys, "deposit": "50", "complexity": cx, "skew": "0" + os.Getenv("SK")}
	for range 2 {
		c, err := Program.Config(vals)
		if err != nil {
			t.Fatal(err)
		}
		c.Events = ev
		for _, l := range loops(c) {
			run := l.Prepare()
			t0 := clock.NowNanos()
			run()
			fmt.Printf("%-24s %6.1f\n", l.Name, float64(clock.NowNanos()-t0)/float64(ev))
		}
		for _, s := range strings.Split(os.Getenv("ST"), ",") {
			c, _ := Program.Config(vals)
			c.Events = ev
			in, err := Program.New(c)
			if err != nil {
				t.Fatal(err)
			}
			m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{Strategy: s, Batch: batchN(), Workers: workersN()})
			if err != nil {
				t.Fatal(err)
			}
			if err := in.Check(); err != nil {
				t.Fatal(err)
			}
			b := m.Breakdown
			n := float64(m.Events)
			fmt.Printf("%-24s %6.1f  plan %.0f build %.0f expl %.0f useful %.0f wait %.0f abort %.0f install %.0f allocs %.3f %v\n", s, m.Seconds*1e9/n, float64(b.Plan)/n, float64(b.Build)/n, float64(b.Explore)/n, float64(b.Useful)/n, float64(b.Wait)/n, float64(b.Abort)/n, float64(b.Install)/n, float64(m.Mallocs)/n, m.Strategies)
		}
	}
}

func workersN() int {
	if os.Getenv("W") == "1" {
		return 1
	}
	return 2
}
func batchN() int { n := 1024; fmt.Sscan(os.Getenv("B"), &n); return n }
