package cluster

import (
	"testing"

	"github.com/heddle-stream/heddle/reconfig"
)

const linkRate = 1000 // bytes per second

var two = []reconfig.Node{0, 1}

// chooser returns a job on nodes, with so many bytes of state, that is about to choose what copies it keeps.
func chooser(t *testing.T, nodes []reconfig.Node, bytes int64) *Job {
	t.Helper()
	even, err := reconfig.Even(64, two)
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{nodes: nodes, owners: even, loads: make([]reconfig.Load, 64), progress: map[reconfig.Node]*Progress{0: {}, 1: {}}}
	j.o.LinkRate = linkRate
	for g := range j.loads {
		j.loads[g].Bytes = bytes / 64
	}
	j.control = newRequests(j)
	return j
}

// Copies are kept by default where there is much state on several nodes.
func TestCopiesByDefault(t *testing.T) {
	for _, small := range []*Job{chooser(t, two, 400), chooser(t, two[:1], 64_000)} {
		small.control.choose(2)
		if small.control.part != 0 || small.control.stale {
			t.Errorf("copies of %d bytes on %d nodes", small.loads[0].Bytes*64, len(small.nodes))
		}
	}
	one := chooser(t, two[:1], 64_000)
	one.control.choose(2)
	one.nodes = two
	one.control.choose(2)
	if one.control.part != replicatePart {
		t.Errorf("one node became two: copies of %g", one.control.part)
	}
}

// There are fewer copies, or none, where keeping them new takes too much of the links.
func TestCopiesThatCostTooMuch(t *testing.T) {
	j := chooser(t, two, 64_000)
	q := &j.control
	q.choose(2)
	if q.part != replicatePart || !q.stale {
		t.Fatalf("copies of %g of the groups", q.part)
	}
	q.replicate()
	if n := len(j.change.Orders); n != 48 || len(q.replica) != 48 {
		t.Fatalf("%d groups of 64 are copied", n)
	}
	came := func(bytesPerSecond float64) { // by each node in two seconds
		for _, p := range j.progress {
			p.Moved += int64(2 * bytesPerSecond)
		}
		q.choose(2)
	}
	came(linkRate) // the copies themselves
	if q.part != replicatePart {
		t.Errorf("while copying: %g", q.part)
	}
	for g := range q.copying {
		delete(q.copying, g)
	}
	came(linkRate) // there is a rest of them in it
	came(linkRate / 5)
	if q.part != replicatePart {
		t.Errorf("cheap copies: %g", q.part)
	}
	came(linkRate / 2)
	if q.part != replicatePart/2 {
		t.Errorf("dear copies: %g", q.part)
	}
	q.replicate()
	if len(q.replica) != 24 {
		t.Errorf("%d groups keep their copies", len(q.replica))
	}
	for range 3 {
		came(linkRate / 2)
	}
	q.replicate()
	if q.part != 0 || len(q.replica) != 0 {
		t.Errorf("dear copies for long: %g, %d", q.part, len(q.replica))
	}
}
