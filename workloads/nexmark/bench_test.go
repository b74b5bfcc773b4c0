package nexmark

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/job"
)

// BenchmarkQueries tells ns per event, generation left out.
func BenchmarkQueries(b *testing.B) {
	for _, q := range Queries() {
		b.Run(q.Name, func(b *testing.B) {
			nanos, events := 0.0, 0.0
			for b.Loop() {
				r, err := q.New(Config{Events: 500_000, Rate: 100_000, Seed: 1, Bare: true})
				if err != nil {
					b.Fatal(err)
				}
				m, err := job.Run(context.Background(), r.Plan, job.Options{})
				if err != nil {
					b.Fatal(err)
				}
				nanos, events = nanos+m.Seconds*1e9, events+float64(m.Events)
			}
			b.ReportMetric(nanos/events, "ns/event")
		})
	}
}
