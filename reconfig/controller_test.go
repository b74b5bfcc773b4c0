package reconfig_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/reconfig"
)

// sampleOf returns a sample of a job with so many nodes, in which the first group has the given load and all others 1.
func sampleOf(t *testing.T, nodes int, first float64) reconfig.Sample {
	t.Helper()
	s := reconfig.Sample{Loads: make([]reconfig.Load, 64)}
	for i := range nodes {
		s.Nodes = append(s.Nodes, reconfig.Node(i))
	}
	for g := range s.Loads {
		s.Loads[g].Writes = 1
	}
	s.Loads[0].Writes = first
	var err error
	if s.Owners, err = reconfig.Even(64, s.Nodes); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLoadBalancer(t *testing.T) {
	b := &reconfig.LoadBalancer{Patience: 2}
	even, skewed := sampleOf(t, 2, 1), sampleOf(t, 2, 40)
	busy := skewed
	busy.Busy = true
	for i, step := range []struct {
		sample reconfig.Sample
		asks   bool
	}{{even, false}, {skewed, false}, {even, false}, {skewed, false}, {busy, false}, {skewed, false}, {skewed, true}, {skewed, false}} {
		r := b.Next(step.sample)
		if (r != nil) != step.asks || r != nil && !r.Rebalance {
			t.Errorf("step %d: %+v", i, r)
		}
	}
	if got := skewed.Imbalance(); got < 1.37 || got > 1.39 { // 71 of 103 at one of two
		t.Errorf("imbalance %g", got)
	}
}

// It adds nodes soon, takes them away late, and later still after that was wrong.
func TestAutoscaler(t *testing.T) {
	a := &reconfig.Autoscaler{Target: 20 * time.Millisecond, Max: 3, Calm: 4}
	nodes, spared := 1, []int{}
	at := 0
	run := func(samples int, p99 time.Duration) {
		for range samples {
			s := sampleOf(t, nodes, 1)
			s.P99 = p99
			if r := a.Next(s); r != nil {
				if r.Nodes < nodes {
					spared = append(spared, at)
				}
				nodes = r.Nodes
			}
			at++
		}
	}
	run(1, 30*time.Millisecond)
	run(1, 10*time.Millisecond) // neither high nor low
	run(1, 30*time.Millisecond)
	if nodes != 1 {
		t.Fatalf("%d nodes after single high samples", nodes)
	}
	run(20, 30*time.Millisecond)
	if nodes != 3 {
		t.Fatalf("%d nodes while latency is high, at most 3 are allowed", nodes)
	}
	run(4, time.Millisecond)
	if nodes != 2 {
		t.Fatalf("%d nodes after four calm samples", nodes)
	}
	run(2, 30*time.Millisecond)
	run(7, time.Millisecond)
	if nodes != 3 {
		t.Fatalf("%d nodes: after a node was missed, four calm samples are not enough", nodes)
	}
	run(1, time.Millisecond)
	if nodes != 2 || len(spared) != 2 {
		t.Errorf("%d nodes, spared at %v", nodes, spared)
	}
	run(100, time.Millisecond)
	if nodes != 1 {
		t.Errorf("%d nodes in the end", nodes)
	}
}

func TestPeriodicAndScript(t *testing.T) {
	s := sampleOf(t, 3, 1)
	p, again := &reconfig.Periodic{Every: time.Second, Groups: 5, Seed: 7}, &reconfig.Periodic{Every: time.Second, Groups: 5, Seed: 7}
	asks := 0
	for i := range 30 {
		s.Elapsed = time.Duration(i) * 250 * time.Millisecond
		r, same := p.Next(s), again.Next(s)
		if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", same) {
			t.Fatalf("with one seed %+v and %+v", r, same)
		}
		if r == nil {
			continue
		}
		asks++
		if d, err := r.Prepare(s.Owners, s.Nodes, s.Loads, 9); err != nil || len(d.Moves) != 5 {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if asks != 7 {
		t.Errorf("%d requests in 7.25 s", asks)
	}
	script := &reconfig.Script{{At: time.Second, Request: reconfig.Request{Nodes: 2}}, {At: 3 * time.Second, Request: reconfig.Request{Nodes: 1}}}
	var got []string
	for i := range 5 {
		s.Elapsed = time.Duration(i) * time.Second
		if r := script.Next(s); r != nil {
			got = append(got, fmt.Sprint(i, r.Nodes))
		}
	}
	if fmt.Sprint(got) != "[1 2 3 1]" {
		t.Errorf("%q", got)
	}
}
