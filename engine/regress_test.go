package engine_test

// One test for each defect that was found in the public code of earlier systems
// of this kind: each says what went wrong there and pins what must hold here.

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/engine"
	m "github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// everywhere runs events under every strategy with 1, 2 and 4 workers, beside
// the serial model, and returns the results of the events, which are the same
// for all.
func everywhere(t *testing.T, events []m.Event) []m.Result {
	t.Helper()
	var want []m.Result
	for _, s := range schedule.Strategies() {
		for _, workers := range []int{1, 2, 4} {
			l := m.New(4)
			var got []m.Result
			l.Events.Each(func(r m.Result) { got = append(got, r) })
			o := engine.Options{Strategy: s.String(), Workers: workers, Verify: true}
			if _, err := engine.Run(context.Background(), l.App, l.Events.Slice(events), o); err != nil {
				t.Fatalf("%s with %d workers: %v", s, workers, err)
			}
			if want == nil {
				want = got
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s with %d workers: results %v, expected %v", s, workers, got, want)
			}
		}
	}
	return want
}

func list(ops ...m.Op) m.Event { return m.Event{Ops: ops} }

func add(key int16, arg int64, reads ...m.Read) m.Op {
	return m.Op{Kind: m.Add, Key: key, Arg: arg, Reads: reads}
}

func at(key int16) m.Read { return m.Read{Key: key} }

func expectOutcomes(t *testing.T, results []m.Result, want string) {
	t.Helper()
	got := ""
	for _, r := range results {
		if r.Committed {
			got += "c"
		} else {
			got += "a"
		}
	}
	if got != want {
		t.Fatalf("outcomes %s, expected %s: %v", got, want, results)
	}
}

// Defect 1: a transfer set the destination's balance to the source's.
func TestRegress01TransferAddsToTheDestination(t *testing.T) {
	app := txn.New("transfer")
	accounts := txn.NewTable[string, int64](app, "accounts")
	accounts.Load("a", 100)
	accounts.Load("b", 7)
	move := txn.Update(accounts, "move", func(_ txn.Ctx, by int64, v *int64) txn.Verdict { *v += by; return txn.OK })
	transfers := txn.On(app, "transfer", func(p *txn.Plan, n int64) {
		move.At(p, "a", -n)
		move.At(p, "b", n)
	}, func(out txn.Outcome, _ int64) bool { return out.Committed() })
	if _, err := engine.Run(context.Background(), app, transfers.Slice([]int64{30}), engine.Options{Strategy: "ns-op-eager"}); err != nil {
		t.Fatal(err)
	}
	if a, _ := accounts.Peek("a"); a != 70 {
		t.Errorf("source holds %d, expected 70", a)
	}
	if b, _ := accounts.Peek("b"); b != 37 {
		t.Errorf("destination holds %d, expected 37", b)
	}
}

// Defect 2: the engines under comparison computed different functions.
func TestRegress02AllStrategiesComputeTheSame(t *testing.T) {
	events := []m.Event{list(add(0, 5, at(1)), add(1, -1)), list(add(2, -9)), list(add(1, 4, at(0), at(2)))}
	var want storage.Hash
	for i, s := range schedule.Strategies() {
		l := m.New(4)
		if _, err := engine.Run(context.Background(), l.App, l.Events.Slice(events), engine.Options{Strategy: s.String()}); err != nil {
			t.Fatal(err)
		}
		got := storage.StateHash(l.App)
		if i == 0 {
			want = got
		}
		if got != want {
			t.Errorf("%s ends in state %s, the others in %s", s, got, want)
		}
	}
}

// Defect 3: the lazy redo ran once: failures that first appear in it did not
// spread, siblings were not undone, and what failed on a value that was aborted
// later stayed failed.
func TestRegress03AbortsReachTheFixPoint(t *testing.T) {
	expectOutcomes(t, everywhere(t, []m.Event{
		list(add(0, 50), add(1, -99)),      // aborts through its second operation
		list(add(0, -40), add(2, 30)),      // could only pass on the first one's gain: aborts
		list(add(2, -20), add(3, 1)),       // and on the second one's: aborts
		list(add(3, -3), add(1, 9)),        // passes, the third one's gain is not needed
		list(add(1, -10), add(0, 1)),       // passes because the fourth did
		list(add(2, -2, at(3)), add(1, 0)), // sees 3 at 0, and 2 as it was: passes
	}), "aaaccc")
}

// Defect 4: dependants of dependants of an aborted operation were not rolled back.
func TestRegress04DependantsOfDependantsAreRedone(t *testing.T) {
	r := everywhere(t, []m.Event{
		list(add(0, 100), add(1, -99)),
		list(add(2, 0, at(0))),
		list(add(3, 0, at(2))),
		list(add(1, 0, at(3))),
	})
	expectOutcomes(t, r, "accc")
	if last := r[3].After[len(r[3].After)-1]; last != 1+3+2+0 {
		t.Fatalf("the last transaction saw %v, expected the sum without the aborted gain", r[3])
	}
}

// Defect 5: the version of an aborted operation stayed visible.
func TestRegress05AbortedVersionsAreInvisible(t *testing.T) {
	r := everywhere(t, []m.Event{list(add(0, 100), add(1, -99)), list(m.Op{Kind: m.Get, Key: 0, Arg: 50})})
	expectOutcomes(t, r, "ac")
	if r[1].Before[0] != 0 {
		t.Fatalf("the reader saw %d, expected 0", r[1].Before[0])
	}
}

// Defect 6: failures were told from a counter shared without synchronisation.
// Each operation of a transaction may be the one that fails.
func TestRegress06AnyOperationMayFail(t *testing.T) {
	for failing := range 4 {
		ops := []m.Op{add(0, 1), add(1, 1), add(2, 1), add(3, 1)}
		ops[failing].Arg = -99
		var events []m.Event
		for range 50 {
			events = append(events, list(ops...), list(add(int16(failing), 1)))
		}
		expectOutcomes(t, everywhere(t, events), strings.Repeat("ac", 50))
	}
}

// Defect 7: a reader was linked before an earlier writer was known.
func TestRegress07NoWriterIsMissed(t *testing.T) {
	var events []m.Event
	for i := range 200 {
		events = append(events, list(add(int16(i%3), 1)), list(add(3, 0, at(0), at(1), at(2))))
	}
	everywhere(t, events)
}

// Defect 8: reads saw later writers of the batch, and chains that no operation
// of the batch was on were skipped.
func TestRegress08ReadsSeeTheirPlaceExactly(t *testing.T) {
	r := everywhere(t, []m.Event{
		list(add(0, 0, at(1), at(3))), // 3 is on no other transaction's list
		list(add(1, 10)),
		list(add(0, 0, at(1))),
	})
	if r[0].Before[0] != 0 || r[0].After[1] != 1+3 || r[2].After[1] != 4+11 {
		t.Fatalf("results %v", r)
	}
}

// The same defect: a window reached beyond the event that read it, into later ones
// of the batch.
func TestRegress08WindowsEndWhereTheyBegin(t *testing.T) {
	note := func(arg int64) m.Op { return m.Op{Kind: m.Note, Key: 1, Arg: arg} }
	look := func(key int16) m.Op { return m.Op{Kind: m.Recent, Key: key, Lo: 1} }
	withLater := everywhere(t, []m.Event{list(note(4)), list(look(2)), list(note(100)), list(note(200)), list(look(3))})
	without := everywhere(t, []m.Event{list(note(4)), list(look(2))})
	if withLater[1].After[1] != without[1].After[1] {
		t.Errorf("a window shows %d, and %d when nothing comes after it", withLater[1].After[1], without[1].After[1])
	}
	if withLater[1].After[1] == withLater[4].After[1] {
		t.Error("a later window shows the same: the test shows nothing")
	}
}

// The same defect: a window longer than the time since the first there is saw
// nothing, since its beginning came out as the end of all time.
func TestRegress08WindowsReachBackOverAllTime(t *testing.T) {
	for _, s := range schedule.Strategies() {
		app := txn.New("all time")
		sums := txn.NewTable[int, int64](app, "sums")
		all := txn.NewWindow(sums, "all", txn.Within(math.MaxInt64))
		add := txn.Upsert(sums, "add", func(c txn.Ctx, n int64, v *int64, _ bool) txn.Verdict {
			*v = n
			for _, seen := range all.All(c) {
				*v += seen
			}
			return txn.OK
		})
		events := txn.On(app, "add", func(p *txn.Plan, n int64) { add.At(p, 0, n, all.Of(p, 0)) }, func(txn.Outcome, int64) bool { return true },
			txn.EventTime[int64, bool](func(n int64) int64 { return n - 100 }))
		// Each adds its number to all there were: 1, 2+1, 3+1+3, 4+1+3+7 and so on.
		o := engine.Options{Strategy: s.String(), Workers: 2, Batch: 3, Verify: true}
		if _, err := engine.Run(context.Background(), app, events.Slice([]int64{1, 2, 3, 4, 5}), o); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if v, _ := sums.Peek(0); v != 31 {
			t.Errorf("%s: the last one makes %d, expected 5+1+3+7+15", s, v)
		}
	}
}

// The same defect: an access with a computed key skipped keys that no other
// operation of the batch named, and could not make new ones.
func TestRegress08ComputedKeysReachEveryKey(t *testing.T) {
	late := func(arg int64, span int16, read int16) m.Op {
		return m.Op{Kind: m.Late, Arg: arg, Span: span, Reads: []m.Read{at(read)}}
	}
	// The first one adds to key (1+8) mod 7 = 2, which nobody names. The second one
	// sees what the event before it makes of key 1 and puts key (11+1) mod 13 = 12,
	// which is new; the last one looks at that.
	r := everywhere(t, []m.Event{
		list(late(8, 7, 1)), list(add(1, 10)), list(late(1, 13, 1)), list(m.Op{Kind: m.Get, Key: 12, Arg: 99}), list(m.Op{Kind: m.Get, Key: 2, Arg: 99}),
	})
	expectOutcomes(t, r, "ccccc")
	if r[0].Before[0] != 2 || r[2].Before[0] != 12 || r[3].Before[0] != 12 || r[4].Before[0] != 11 {
		t.Errorf("keys %d and %d, key 12 holds %v, key 2 %v", r[0].Before[0], r[2].Before[0], r[3].Before, r[4].Before)
	}
}

// Defect 9: operations of one transaction on one key, or on equal keys of two
// tables, compared equal and were lost.
func TestRegress09SameKeyTwiceAndInTwoTables(t *testing.T) {
	r := everywhere(t, []m.Event{
		list(add(1, 5), add(1, 7), m.Op{Kind: m.Add, Table: 1, Key: 1, Arg: 100}),
		list(add(1, 0), m.Op{Kind: m.Add, Table: 1, Key: 1}),
	})
	expectOutcomes(t, r, "cc")
	if r[1].Before[0] != 13 || r[1].Before[1] != 101 {
		t.Fatalf("the second transaction saw %v, expected 13 and 101", r[1].Before)
	}
}

// Defect 10: tables written in place could not be rolled back.
func TestRegress10AbortTakesBackEveryKindOfChange(t *testing.T) {
	r := everywhere(t, []m.Event{
		list(m.Op{Kind: m.Make, Key: 9, Arg: 1}, m.Op{Kind: m.Remove, Key: 2, Arg: 99}, m.Op{Kind: m.Put, Key: 3, Arg: 50}, add(0, -1)),
		list(m.Op{Kind: m.Make, Key: 9, Arg: 4}, add(2, 0)),
		list(add(3, 0)),
	})
	expectOutcomes(t, r, "acc")
	if r[1].Before[0] != 2 || r[2].Before[0] != 3 {
		t.Fatalf("after the abort the values are %v and %v, expected 2 and 3", r[1].Before, r[2].Before)
	}
}

// Defect 11: chains that wait for each other hung unless the user had set a
// flag, and diamonds were taken for cycles.
func TestRegress11CyclesBetweenChainsNeedNoFlag(t *testing.T) {
	var events []m.Event
	for range 20 {
		events = append(events,
			list(add(0, 1, at(1))), list(add(1, 1, at(0))), // a cycle of two chains
			list(add(2, 0, at(0), at(1))), // and a diamond below
		)
	}
	everywhere(t, events)
}

// Defect 12 is about a generator that took the share of aborts from the wrong
// parameter and cut fractions off: workloads/sl has the test.
