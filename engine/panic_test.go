package engine

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// everyStrategy runs an application made anew under strategies of all sorts.
func everyStrategy(t *testing.T, events int, build func() (*txn.App, txn.Source), look func(t *testing.T, app *txn.App, m Metrics, err error)) {
	t.Helper()
	for _, s := range []string{"serial", "ns-op-eager", "bfs-chain-lazy", "nested", "lock", "auto"} {
		for _, batch := range []int{7, events} {
			app, source := build()
			m, err := Run(context.Background(), app, source, Options{Strategy: s, Workers: 3, Batch: batch})
			t.Run(s, func(t *testing.T) { look(t, app, m, err) })
		}
	}
}

// A merge function that panics stops the run where a serial run would have, under
// every strategy, whoever was the first to merge.
func TestMergePanicStopsAtItsEvent(t *testing.T) {
	const bad = 33
	for name, reads := range map[string]bool{"merged at the end": false, "merged by a reader": true} {
		t.Run(name, func(t *testing.T) {
			everyStrategy(t, 60, func() (*txn.App, txn.Source) {
				app := txn.New("merge")
				sums := txn.NewTable[int, int](app, "sums")
				add := txn.Merge(sums, "add", func(_ txn.Ctx, n int) (int, txn.Verdict) { return n, txn.OK }, func(v *int, n int) {
					if n == bad {
						panic("bad delta")
					}
					*v += n
				})
				look := txn.Get(sums, "look", func(txn.Ctx, int, int, bool) txn.Verdict { return txn.OK })
				events := txn.On[int, int](app, "n", func(p *txn.Plan, n int) {
					add.At(p, 0, n)
					if reads {
						look.At(p, 0, n)
					}
				}, nil)
				return app, events.Slice(upTo(60))
			}, func(t *testing.T, app *txn.App, m Metrics, err error) {
				var p *PanicError
				if !errors.As(err, &p) || p.Event != bad || m.Events != bad {
					t.Fatalf("%d events, %v", m.Events, err)
				}
				if sum := theSum(app); sum != bad*(bad-1)/2 {
					t.Errorf("the sum is %d, that of the events before is %d", sum, bad*(bad-1)/2)
				}
			})
		})
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func theSum(app *txn.App) (sum int) {
	app.Tables()[0].All(func(_, v any) bool {
		sum += v.(int)
		return true
	})
	return sum
}

// So does the function of a fold, which runs when a version is kept.
func TestFoldPanicStopsAtItsEvent(t *testing.T) {
	const bad = 33
	everyStrategy(t, 60, func() (*txn.App, txn.Source) {
		app := txn.New("fold")
		sums := txn.NewTable[int, int](app, "sums")
		fold := txn.NewFold(sums, "recent", txn.LastEvents(20), func(total *int, v int) {
			if v == bad*(bad+1)/2 {
				panic("bad version")
			}
			*total += v
		}, func(later, earlier int) int { return later - earlier })
		add := txn.Upsert(sums, "add", func(c txn.Ctx, n int, v *int, _ bool) txn.Verdict {
			_ = fold.Get(c)
			*v += n
			return txn.OK
		})
		events := txn.On[int, int](app, "n", func(p *txn.Plan, n int) { add.At(p, 0, n, fold.Of(p, 0)) }, nil)
		return app, events.Slice(upTo(60))
	}, func(t *testing.T, app *txn.App, m Metrics, err error) {
		var p *PanicError
		if !errors.As(err, &p) || p.Event < bad || p.Event > bad+1 || m.Events != p.Event {
			t.Fatalf("%d events, %v", m.Events, err)
		}
		if sum := theSum(app); sum != m.Events*(m.Events-1)/2 {
			t.Errorf("the sum is %d after %d events", sum, m.Events)
		}
	})
}

// And one that gives an event's time; a time that goes back is told as such.
func TestTimePanicStopsAtItsEvent(t *testing.T) {
	build := func(back bool) func() (*txn.App, txn.Source) {
		return func() (*txn.App, txn.Source) {
			app := txn.New("time")
			sums := txn.NewTable[int, int](app, "sums")
			recent := txn.NewWindow(sums, "recent", txn.Within(10))
			add := txn.Upsert(sums, "add", func(_ txn.Ctx, n int, v *int, _ bool) txn.Verdict {
				*v += n
				return txn.OK
			})
			events := txn.On(app, "n", func(p *txn.Plan, n int) { add.At(p, 0, n, recent.Of(p, 0)) }, nil, txn.EventTime[int, int](func(n int) int64 {
				switch {
				case n == 33 && back:
					return 5
				case n == 33:
					panic("no time")
				}
				return int64(n)
			}))
			return app, events.Slice(upTo(60))
		}
	}
	for _, back := range []bool{false, true} {
		everyStrategy(t, 60, build(back), func(t *testing.T, app *txn.App, m Metrics, err error) {
			var p *PanicError
			if !errors.As(err, &p) || p.Event != 33 || m.Events != 33 || theSum(app) != 33*32/2 {
				t.Fatalf("%d events, %v", m.Events, err)
			}
			var wrong *txn.TimeError
			if errors.As(err, &wrong) != back {
				t.Errorf("back %v: %v", back, err)
			}
		})
	}
}

// A key function may meet rows that stand under a wrongly guessed key: what it does
// then is nobody's concern.
func TestKeyFunctionOnAGuessedRow(t *testing.T) {
	everyStrategy(t, 200, func() (*txn.App, txn.Source) {
		app := txn.New("chain")
		heads := txn.NewTable[int, int](app, "heads")
		nodes := txn.NewTable[int, int](app, "nodes")
		heads.Load(0, 1)
		nodes.Load(1, 100)
		head := txn.NewParam(heads, "head")
		node := txn.NewLateParam(nodes, "node", func(c txn.Ctx, _ int) (int, bool) { return head.Get(c) })
		next := txn.NewLateParam(nodes, "next", func(c txn.Ctx, _ int) (int, bool) {
			v, found := node.Get(c)
			if !found {
				panic("a head without a node")
			}
			return v, true
		})
		advance := txn.Update(heads, "advance", func(c txn.Ctx, n int, v *int) txn.Verdict {
			next.Get(c)
			*v++
			return txn.OK
		})
		grow := txn.Insert(nodes, "grow", func(_ txn.Ctx, n int, v *int) txn.Verdict {
			*v = n
			return txn.OK
		})
		events := txn.On[int, int](app, "n", func(p *txn.Plan, n int) {
			grow.At(p, n+2, n)
			h := head.Of(p, 0)
			m := node.Then(p, 0, h)
			advance.At(p, 0, n, h, m, next.Then(p, 0, m))
		}, nil)
		return app, events.Slice(upTo(200))
	}, func(t *testing.T, app *txn.App, m Metrics, err error) {
		if err != nil || m.Committed != 200 {
			t.Fatalf("%d committed, %v", m.Committed, err)
		}
	})
}

// Keys that are only asked for leave nothing behind.
func TestAbsentKeysLeaveNothing(t *testing.T) {
	app := txn.New("ghosts")
	table := txn.NewTable[int, [4]int64](app, "table")
	look := txn.Get(table, "look", func(txn.Ctx, int, [4]int64, bool) txn.Verdict { return txn.OK })
	events := txn.On[int, int](app, "n", func(p *txn.Plan, n int) { look.At(p, n, n) }, nil)
	var heaps []uint64
	o := Options{Strategy: "ns-op-eager", Workers: 2, Batch: 1000}
	o.Listener.BatchDone = func(b BatchInfo) {
		if b.Number%100 == 99 {
			runtime.GC()
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			heaps = append(heaps, s.HeapAlloc)
		}
	}
	next := 0
	source := txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range limit {
			events.Push(f, next)
			next++
		}
		if next >= 400_000 {
			return errEnd
		}
		return nil
	})
	if _, err := Run(context.Background(), app, source, o); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	if last := len(heaps) - 1; last < 3 || heaps[last] > heaps[0]+heaps[0]/2+1<<20 {
		t.Errorf("the heap grows: %v", heaps)
	}
	if storage.StateHash(app) != (storage.Hash{}) {
		t.Error("something is left")
	}
}

var errEnd = errors.New("enough")
