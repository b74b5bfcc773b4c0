package sl

import (
	"strconv"
	"testing"

	"github.com/heddle-stream/heddle/engine"
)

func TestDynamicVerifiedUnderContention(t *testing.T) {
	for _, s := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-op-eager", "dfs-chain-lazy", "lock", "tstream", "auto"} {
		for _, keys := range []string{"10", "50000"} { // the larger one takes the serial path of large tables
			m := runProgram(t, &Dynamic, 3900, map[string]string{"keys": keys}, engine.Options{Strategy: s, Verify: true, Batch: 512})
			if !m.Verified || m.Aborted == 0 {
				t.Errorf("%s, %s keys: verified %v, %d aborted", s, keys, m.Verified, m.Aborted)
			}
		}
	}
}

// Batches that end within a phase, at its end, and behind it.
func TestDynamicSmallBatches(t *testing.T) {
	for _, batch := range []int{1, 20, 33} {
		for _, s := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
			if m := runProgram(t, &Dynamic, 260, map[string]string{"keys": "5"}, engine.Options{Strategy: s, Verify: true, Batch: batch, Workers: 3}); !m.Verified {
				t.Errorf("%s, batches of %d: not verified", s, batch)
			}
		}
	}
}

func TestDynamicLoopsReachTheEnginesState(t *testing.T) {
	compareLoops(t, &Dynamic, newPhased, map[string]string{"keys": "300"})
	compareLoops(t, &Dynamic, newPhased, map[string]string{"keys": "300", "phase": "12"})
	compareLoops(t, &Dynamic, newPhased, map[string]string{"keys": "300", "work": "odd", "complexity": "1us"})
}

func dynamicEvents(t *testing.T, events int, params map[string]string) []Event {
	t.Helper()
	c, err := Dynamic.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	return list(c, newPhased)
}

// shares returns the deposits among the events and the transfers among the
// others that cannot be covered, in percent.
func shares(events []Event) (deposits, aborts float64) {
	transfers, tooHigh := 0, 0
	for _, e := range events {
		if !e.IsDeposit {
			transfers++
			if e.Transfer.Amount == tooLarge {
				tooHigh++
			}
		}
	}
	return 100 - 100*float64(transfers)/float64(len(events)), 100 * float64(tooHigh) / float64(max(1, transfers))
}

func TestPhases(t *testing.T) {
	const each = 10_000
	all := dynamicEvents(t, each*len(phases), nil)
	for i, p := range phases {
		part := all[i*each : (i+1)*each]
		if d, a := shares(part); max(d-p.deposit, p.deposit-d) > 2 || max(a-p.abort, p.abort-a) > 2 {
			t.Errorf("phase %d has %.1f %% deposits and %.1f %% aborts, not %v and %v", i, d, a, p.deposit, p.abort)
		}
		for j, e := range dynamicEvents(t, each, map[string]string{"phase": strconv.Itoa(i)}) {
			if e != part[j] {
				t.Fatalf("phase %d alone has another event %d than in its place", i, j)
			}
		}
	}
}

func TestPhasesShareTheEventsEvenly(t *testing.T) {
	for _, n := range []int{1, 5, 13, 14, 100} {
		p := &phased{events: n}
		for range phases {
			p.makers = append(p.makers, nil)
		}
		var count [len(phases)]int
		for p.made = range n {
			count[p.phase()]++
		}
		for i, c := range count {
			if c < n/len(phases) || c > n/len(phases)+1 {
				t.Errorf("%d events: phase %d has %d", n, i, c)
			}
		}
	}
}
