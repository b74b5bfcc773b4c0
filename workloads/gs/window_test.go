package gs

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// windowed runs the workload and returns its application: an error, a failed
// check and any difference from the hand-written loop are failures.
func windowed(t *testing.T, params map[string]string, events int, opts engine.Options) (*WindowApp, engine.Metrics) {
	t.Helper()
	c, err := Windowed.Config(params)
	if err != nil {
		t.Fatal(err)
	}
	c.Events = events
	keys, window := c.Int("keys"), c.Int("window")
	a := NewWindowed(keys, window, c.Text("fold") == "yes", c.Cost("complexity"))
	g := newWindowGenerator(c)
	m, err := engine.Run(context.Background(), a.App, program.Generated(c.Events, func(f *txn.Feed) {
		if e := g.next(); e.look.Keys != nil {
			a.Looks.Push(f, e.look)
		} else {
			a.Sums.Push(f, e.sum)
		}
	}), opts)
	if err != nil {
		t.Fatalf("%v: %v", params, err)
	}
	if err := a.check(keys, window); err != nil {
		t.Errorf("%v: %v", params, err)
	}
	l := windowLoop(c)
	l.run()
	if diff := cmp.Diff(l.vals, maps.Collect(a.Vals.All())); diff != "" {
		t.Errorf("%v: values differ from the loop's (-loop +engine):\n%s", params, diff)
	}
	if diff := cmp.Diff(l.means, maps.Collect(a.Means.All())); diff != "" {
		t.Errorf("%v: means differ from the loop's (-loop +engine):\n%s", params, diff)
	}
	return a, m
}

// All strategies equal the model and the loop, with windows that lie within a
// batch and windows that reach over many; a fold and going over the versions are
// the same.
func TestWindowedReadsVerified(t *testing.T) {
	for _, window := range []string{"1", "70", "1500"} {
		hashes := map[storage.Hash]bool{}
		for _, fold := range []string{"yes", "no"} {
			for _, s := range []string{"serial", "ns-op-eager", "ns-op-lazy", "bfs-chain-eager", "dfs-op-lazy", "lock", "tstream", "auto"} {
				params := map[string]string{
					"keys": "60", "abort": "10", "skew": "0.5", "accesses": "2", "trigger": "7", "length": "9", "window": window, "fold": fold,
				}
				a, m := windowed(t, params, 3000, engine.Options{Strategy: s, Verify: true, Workers: 3, Batch: 200})
				hashes[storage.StateHash(a.App)] = true
				if m.Aborted == 0 || a.Means.Len() == 0 {
					t.Errorf("%s: %d aborted, %d means: the test tests nothing", s, m.Aborted, a.Means.Len())
				}
			}
		}
		if len(hashes) != 1 {
			t.Errorf("window %s: %d different states", window, len(hashes))
		}
	}
}

// Whatever the length of the run, no more versions are kept than a window has
// events.
func TestWindowBoundsWhatIsKept(t *testing.T) {
	for _, fold := range []string{"yes", "no"} {
		_, m := windowed(t, map[string]string{"window": "512", "fold": fold}, 20_000, engine.Options{Batch: 256})
		if m.KeptMax == 0 || m.KeptMax > 512 {
			t.Errorf("fold %s: %d versions were kept, a window has 512 events", fold, m.KeptMax)
		}
	}
}

func TestLookHasNoMoreKeysThanTheTable(t *testing.T) {
	c, err := Windowed.Config(map[string]string{"keys": "50", "length": "51"})
	if err != nil {
		t.Fatal(err)
	}
	var param *program.ParamError
	if _, err := Windowed.New(c); !errors.As(err, &param) || param.Param != "length" {
		t.Errorf("got %v", err)
	}
}

func TestWindowedCheckFindsWhatIsWrong(t *testing.T) {
	for want, spoil := range map[string]func(a *WindowApp){
		"values[3] is 40":         func(a *WindowApp) { a.Vals.Load(3, 40) },
		"41 keys of 40":           func(a *WindowApp) { a.Vals.Load(40, 0) },
		"means[3] is -1":          func(a *WindowApp) { a.Means.Load(3, Mean{-1, 1}) },
		"means[3] is of 6 versio": func(a *WindowApp) { a.Means.Load(3, Mean{1, 6}) },
		"means[40] is of 1 versi": func(a *WindowApp) { a.Means.Load(40, Mean{1, 1}) },
	} {
		a := NewWindowed(40, 5, true, program.Cost{})
		if err := a.check(40, 5); err != nil {
			t.Fatal(err)
		}
		if spoil(a); a.check(40, 5) == nil || !strings.Contains(a.check(40, 5).Error(), want) {
			t.Errorf("%s: %v", want, a.check(40, 5))
		}
	}
}
