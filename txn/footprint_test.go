package txn_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/txn"
)

// A footprint has the keys that the events themselves list, or says that these do not tell.
func TestFootprint(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(20) {
		l := metamorphic.New(4)
		events := metamorphic.Draw(rng.New(seed, 21), 200, metamorphic.Shape{Keys: 9, OpsMax: 4, Tables: 3, NoLate: seed%2 == 0, NoWindows: seed%4 < 2, Plain: seed%4 == 0})
		feed, f := l.App.NewFeed(), l.App.NewFootprint()
		for _, e := range events {
			l.Events.Push(feed, e)
		}
		for i, e := range events {
			var want, got []string
			computed := false
			for _, o := range e.Ops {
				for _, r := range o.Reads {
					want = append(want, fmt.Sprint(r.Table, r.Key))
					computed = computed || r.Chase
				}
				switch o.Kind {
				case metamorphic.Late, metamorphic.Recent, metamorphic.SumOf:
					computed = true
				case metamorphic.Note, metamorphic.Forget:
					want = append(want, fmt.Sprint(3, o.Key))
				default:
					want = append(want, fmt.Sprint(o.Table, o.Key))
				}
			}
			keys, err := f.Of(feed, i)
			var unknown *txn.ComputedError
			if errors.As(err, &unknown) != computed || err != nil && !computed {
				t.Fatalf("%+v: %v", e, err)
			}
			if computed {
				kinds[unknown.What]++
				continue
			}
			for _, k := range keys {
				table := map[string]int{"left": 0, "right": 1, "ordered": 2}
				n, known := table[l.App.Tables()[k.Table].Name()]
				if !known {
					n = 3
				}
				row := append(slices.Clone(k.Key), make([]byte, 8)...)
				if size, err := l.App.Tables()[k.Table].KeyLen(row); err != nil || size != len(k.Key) {
					t.Fatalf("key %x of %d bytes, %v", k.Key, size, err)
				}
				got = append(got, fmt.Sprint(n, keyOf(t, l.App.Tables()[k.Table], k.Key)))
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(slices.Compact(want), slices.Compact(got)) {
				t.Fatalf("%+v names %v", e, got)
			}
		}
	}
	if len(kinds) < 3 {
		t.Errorf("reasons were %v", kinds)
	}
}

// keyOf returns the key that bytes are, by putting a row of it into the table.
func keyOf(t *testing.T, v txn.TableView, key []byte) (found any) {
	t.Helper()
	v.Reset()
	if err := v.LoadRow(append(slices.Clone(key), 2)); err != nil {
		t.Fatal(err)
	}
	v.All(func(key, _ any) bool { found = key; return true })
	row, ok, err := v.AppendRowOf(nil, key)
	if err != nil || !ok || !slices.Equal(row, append(slices.Clone(key), 2)) {
		t.Fatalf("row %x, %v, %v", row, ok, err)
	}
	if err := v.DropRow(key); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := v.AppendRowOf(nil, key); ok || err != nil {
		t.Fatalf("a dropped row: %v, %v", ok, err)
	}
	return found
}
