package cluster

import (
	"testing"

	"github.com/heddle-stream/heddle/reconfig"
)

// Copies are kept by default where there is much state on several nodes, and fewer of them, or none, where
// keeping them new takes too much of the links.
func TestCopiesByDefault(t *testing.T) {
	const link = 1000.0
	even, err := reconfig.Even(64, []reconfig.Node{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	job := func(nodes []reconfig.Node, bytes int64) *Job {
		j := &Job{nodes: nodes, owners: even, loads: make([]reconfig.Load, 64), progress: map[reconfig.Node]*Progress{0: {}, 1: {}}}
		j.o.LinkRate = link
		for g := range j.loads {
			j.loads[g].Bytes = bytes / 64
		}
		j.control = newRequests(j)
		return j
	}
	two := []reconfig.Node{0, 1}
	for _, small := range []*Job{job(two, 400), job(two[:1], 64_000)} {
		small.control.choose(2)
		if small.control.part != 0 || small.control.stale {
			t.Errorf("copies of %d bytes on %d nodes", small.loads[0].Bytes*64, len(small.nodes))
		}
	}
	one := job(two[:1], 64_000)
	one.control.choose(2)
	one.nodes = two
	one.control.choose(2)
	if one.control.part != 0.5 {
		t.Errorf("one node became two: copies of %g", one.control.part)
	}

	j := job(two, 64_000)
	q := &j.control
	q.choose(2)
	if q.part != 0.5 || !q.stale {
		t.Fatalf("copies of %g of the groups", q.part)
	}
	q.replicate()
	if n := len(j.change.Orders); n != 32 || len(q.replica) != 32 {
		t.Fatalf("%d groups of 64 are copied", n)
	}
	came := func(bytesPerSecond float64) { // by each node in two seconds
		for _, p := range j.progress {
			p.Moved += int64(2 * bytesPerSecond)
		}
		q.choose(2)
	}
	came(link) // the copies themselves
	if q.part != 0.5 {
		t.Errorf("while copying: %g", q.part)
	}
	for g := range q.copying {
		delete(q.copying, g)
	}
	came(link) // there is a rest of them in it
	came(link / 20)
	if q.part != 0.5 {
		t.Errorf("cheap copies: %g", q.part)
	}
	came(link / 5)
	if q.part != 0.25 {
		t.Errorf("dear copies: %g", q.part)
	}
	q.replicate()
	if len(q.replica) != 16 {
		t.Errorf("%d groups keep their copies", len(q.replica))
	}
	for range 3 {
		came(link / 5)
	}
	q.replicate()
	if q.part != 0 || len(q.replica) != 0 {
		t.Errorf("dear copies for long: %g, %d", q.part, len(q.replica))
	}
}
