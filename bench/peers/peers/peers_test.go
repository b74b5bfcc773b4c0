package peers

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/window"
	"github.com/heddle-stream/heddle/storage/window/windowtest"
	"github.com/heddle-stream/heddle/workloads/sl"
)

func compare(t *testing.T, in *Input, peers ...Peer) *Comparison {
	t.Helper()
	c := &Comparison{Input: in, Peers: peers, Reps: 1, Full: true}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Rows {
		if r.StateHash != c.Rows[0].StateHash || r.Events != len(in.Events) {
			t.Errorf("%s: state %s after %d events, %s has %s", r.Peer, r.StateHash, r.Events, c.Rows[0].Peer, c.Rows[0].StateHash)
		}
	}
	return c
}

func TestAllReachTheSameState(t *testing.T) {
	in, err := Generate(Params{Events: 3000, Keys: 500, Skew: 0.9, Abort: 10, Deposit: 25, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, in, All()...)
}

func TestThoseOnDiskReachTheSameState(t *testing.T) {
	in := contested(7, 20_000, 5000)
	in.Memory = 1
	compare(t, in, OnDisk()...)
}

// contested has amounts that few balances cover several times: which transfers
// fail depends on what came before them.
func contested(seed uint64, events, keys int) *Input {
	r := rng.New(seed, 1)
	in := &Input{Keys: keys, Events: make([]sl.Event, events)}
	key := func() uint32 { return uint32(r.IntN(keys)) }
	two := func() (a, b uint32) {
		a = key()
		return a, (a + 1 + uint32(r.IntN(keys-1))) % uint32(keys)
	}
	for i := range in.Events {
		e := &in.Events[i]
		if e.IsDeposit = r.IntN(10) == 0; e.IsDeposit {
			e.Deposit = sl.Deposit{Account: key(), Book: key(), Amount: int64(r.IntN(sl.Opening / 10))}
			continue
		}
		t := &e.Transfer
		t.From, t.To = two()
		t.FromBook, t.ToBook = two()
		t.Amount, t.BookAmount = int64(r.IntN(sl.Opening)), int64(r.IntN(sl.Opening))
	}
	return in
}

func TestAllKeepEventOrder(t *testing.T) {
	for seed := range uint64(3) {
		for _, keys := range []int{2, 20, 500} {
			in := contested(seed, 3000, keys)
			forwards := compare(t, in, All()...)
			slices.Reverse(in.Events)
			backwards := compare(t, in, All()[2])
			if forwards.Rows[0].StateHash == backwards.Rows[0].StateHash {
				t.Errorf("seed %d, %d keys: the order of the events makes no difference", seed, keys)
			}
		}
	}
}

func TestSlowPeersRunThePrefix(t *testing.T) {
	few := All()[3]
	few.Most = 70
	c := &Comparison{Input: contested(1, 300, 10), Peers: []Peer{All()[0], few}, Reps: 2}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Rows[0].Events != 300 || c.Rows[1].Events != 70 || len(c.Rows[1].PerSec) != 2 {
		t.Errorf("%+v", c.Rows)
	}
}

// idle does nothing.
type idle struct{ Job }

func (idle) Run(context.Context) error { return nil }

func TestWrongStateIsAnError(t *testing.T) {
	wrong := Peer{Name: "wrong", Prepare: func(in *Input) (Job, error) {
		j, err := prepareMaps(in)
		return idle{j}, err
	}}
	c := &Comparison{Input: contested(1, 300, 10), Peers: []Peer{All()[0], wrong}, Reps: 1}
	var mismatch *MismatchError
	if err := c.Run(t.Context()); !errors.As(err, &mismatch) || mismatch.Peer != "wrong" || mismatch.Events != 300 {
		t.Errorf("%v", err)
	}
}

func TestHashSeesEveryDifference(t *testing.T) {
	base := func() (a, b map[uint32]int64) { return map[uint32]int64{1: 5, 2: 6}, map[uint32]int64{1: 7} }
	a, b := base()
	want := mapState(a, b).Hash()
	for name, change := range map[string]func(a, b map[uint32]int64){
		"a value":    func(a, _ map[uint32]int64) { a[2]++ },
		"a key":      func(a, _ map[uint32]int64) { delete(a, 2); a[3] = 6 },
		"one less":   func(_, b map[uint32]int64) { delete(b, 1) },
		"its table":  func(a, b map[uint32]int64) { delete(a, 2); b[2] = 6 },
		"swapped":    func(a, _ map[uint32]int64) { a[1], a[2] = a[2], a[1] },
		"a zero row": func(_, b map[uint32]int64) { b[9] = 0 },
	} {
		a, b := base()
		change(a, b)
		if mapState(a, b).Hash() == want {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestClaimsAreAscendingAndUnique(t *testing.T) {
	r := rng.New(1, 1)
	for range 1000 {
		var c claim
		var want []uint32
		for range 1 + r.IntN(4) {
			s := uint32(r.IntN(5))
			c.add(s)
			want = append(want, s)
		}
		slices.Sort(want)
		if got := c.shards[:c.n]; !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("%v, expected %v", got, want)
		}
	}
}

// Each store gives back what went in, with next to no memory.
func TestWindowStores(t *testing.T) {
	names, stores := WindowStores()
	seen := 0
	err := bench.RunFlow(context.Background(), bench.Scale{Events: 500, Reps: 1}, names, stores, nil, func(r bench.FlowRun) error {
		seen++
		if r.Steps < 5000 || r.Store == "heddle" && r.Trace == "tumbling" && r.PeakMemory == 0 {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil || seen != 4*len(names) {
		t.Errorf("%d of %d: %v", seen, 4*len(names), err)
	}
}

// Stores in Pebble do what operators expect of Heddle's.
func TestStoresConform(t *testing.T) {
	p, err := OpenPebbleStores(t.TempDir(), 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	windowtest.Conform(t, p, 1, func(*testing.T, windowtest.Kind, window.Options, window.Store) {})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
