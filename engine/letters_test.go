package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/source"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// payment is an event from outside, with whatever is wrong with it.
type payment struct {
	From, To string
	Amount   int64
}

// till moves money between accounts. It rejects what cannot be meant.
func till() (*txn.App, *txn.Event[payment, string]) {
	app := txn.New("till")
	accounts := txn.NewTable[string, int64](app, "accounts")
	for _, name := range []string{"ann", "bob", "cyd"} {
		accounts.Load(name, 50)
	}
	short := app.Reason("short of money")
	take := txn.Update(accounts, "take", func(_ txn.Ctx, amount int64, v *int64) txn.Verdict {
		if *v -= amount; *v < 0 {
			return short
		}
		return txn.OK
	})
	give := txn.Upsert(accounts, "give", func(_ txn.Ctx, amount int64, v *int64, _ bool) txn.Verdict {
		*v += amount
		return txn.OK
	})
	return app, txn.On(app, "pay", func(p *txn.Plan, e payment) {
		if e.Amount <= 0 {
			p.Reject(fmt.Sprintf("an amount of %d", e.Amount))
			return
		}
		take.At(p, e.From, e.Amount)
		give.At(p, e.To, e.Amount)
	}, func(out txn.Outcome, e payment) string { return e.From + ": " + out.Reason() })
}

// payments writes a file of events in which things are wrong.
func payments(t *testing.T, r *rng.RNG, n int) (name string, wrong int) {
	t.Helper()
	names := []string{"ann", "bob", "cyd", "dan"}
	var text strings.Builder
	for range n {
		switch r.IntN(8) {
		case 0:
			text.WriteString(`{"From":"ann","To"` + "\n")
			wrong++
		case 1:
			fmt.Fprintf(&text, `{"From":"ann","To":"bob","Amount":%d}`+"\n", -r.IntN(3))
			wrong++
		default:
			fmt.Fprintf(&text, `{"From":%q,"To":%q,"Amount":%d}`+"\n", names[r.IntN(4)], names[r.IntN(4)], 1+r.IntN(40))
		}
	}
	text.WriteString("the end, without its line")
	name = filepath.Join(t.TempDir(), "payments.jsonl")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name, wrong + 1
}

// account is what a run over such a file leaves.
type account struct {
	state             storage.Hash
	events, discarded int
	output, letters   string
}

func paid(fs vfs.FS, name string, o Options) (account, error) {
	app, _ := till()
	in, err := source.Open(app, name, source.Options{Discard: true})
	if err != nil {
		return account{}, err
	}
	o.FS, o.Output, o.DeadLetters = fs, "out.jsonl", "letters.jsonl"
	m, err := Run(context.Background(), app, in, o)
	if err := errors.Join(err, in.Close()); err != nil {
		return account{}, err
	}
	a := account{state: storage.StateHash(app), events: m.Events, discarded: m.Discarded}
	for file, text := range map[string]*string{"out.jsonl": &a.output, "letters.jsonl": &a.letters} {
		f, err := fs.Open(file)
		if err != nil {
			return a, err
		}
		all, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return a, err
		}
		*text = string(all)
	}
	return a, nil
}

// What cannot be an event goes to the dead letters, in its order, once, whatever the
// strategy, the batch and the crashes; nothing else is lost or done twice.
func TestDeadLettersExactlyOnce(t *testing.T) {
	seeds, step := 4, 5
	if testing.Short() {
		seeds, step = 3, 17
	}
	for seed := range uint64(seeds) {
		r := rng.New(seed, 51)
		name, wrong := payments(t, r, 60)
		want, err := paid(vfs.NewCrashable(), name, Options{Workers: 1, Strategy: "serial", Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if want.discarded != wrong || strings.Count(want.letters, "\n") != wrong {
			t.Fatalf("seed %d: %d dead letters, %d are counted, %d things are wrong:\n%s", seed, strings.Count(want.letters, "\n"), want.discarded, wrong, want.letters)
		}
		for _, strategy := range []string{"serial", "ns-op-eager", "tstream", "bfs-chain-lazy", "auto"} {
			got, err := paid(vfs.NewCrashable(), name, Options{Workers: 2, Strategy: strategy, Batch: 1 + r.IntN(20), Verify: true})
			if err != nil || got != want {
				t.Fatalf("seed %d, %s: %v\n got %+v\nwant %+v", seed, strategy, err, got, want)
			}
		}
		for _, scheme := range Schemes() {
			o := Options{State: "state", Durability: scheme, Workers: 2, Strategy: []string{"auto", "ns-op-eager"}[r.IntN(2)], Batch: 1 + r.IntN(9), Checkpoints: small(int64(100 + r.IntN(600)))}
			whole := vfs.NewFaulty(vfs.NewCrashable())
			if got, err := paid(whole, name, o); err != nil || got != want {
				t.Fatalf("seed %d, %s: %v\n got %+v\nwant %+v", seed, scheme, err, got, want)
			}
			for n := int(seed) % step; n < whole.Ops(); n += step {
				disk := vfs.NewCrashable()
				if _, err := paid(dying(disk, n), name, o); !errors.Is(err, errCrash) {
					t.Fatalf("seed %d, %s, operation %d: %v", seed, scheme, n, err)
				}
				fall(disk, r)
				if got, err := paid(disk, name, o); err != nil || got != want {
					t.Fatalf("seed %d, %s, crash at operation %d: %v\n got %+v\nwant %+v", seed, scheme, n, err, got, want)
				}
			}
		}
	}
}

// Without dead letters the run stops where something is wrong.
func TestRejectionStopsTheRun(t *testing.T) {
	for _, strategy := range []string{"serial", "ns-op-eager"} {
		app, pays := till()
		events := []payment{{"ann", "bob", 5}, {"bob", "cyd", -1}, {"cyd", "ann", 5}}
		m, err := Run(context.Background(), app, pays.Slice(events), Options{Strategy: strategy, Verify: true})
		var rejected *txn.RejectedError
		if !errors.As(err, &rejected) || rejected.Reason != "an amount of -1" || m.Events != 1 {
			t.Errorf("%s: %v after %d events", strategy, err, m.Events)
		}
	}
}

// A plan rejects an event before it lists anything, or not at all.
func TestLateRejectionIsAMistake(t *testing.T) {
	for n, text := range []string{"lists something for an event that it rejected", "rejects an event for which it listed something"} {
		for _, strategy := range []string{"serial", "ns-op-eager"} {
			app := txn.New("late")
			table := txn.NewTable[int, int](app, "table")
			touch := txn.Upsert(table, "touch", func(txn.Ctx, int, *int, bool) txn.Verdict { return txn.OK })
			events := txn.On[int, int](app, "event", func(p *txn.Plan, n int) {
				if n == 0 {
					p.Reject("none")
				}
				touch.At(p, n, n)
				if n == 1 {
					p.Reject("one")
				}
			}, nil)
			_, err := Run(context.Background(), app, events.Slice([]int{n}), Options{Strategy: strategy, FS: vfs.NewCrashable(), DeadLetters: "letters"})
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%d, %s: %v", n, strategy, err)
			}
		}
	}
}
