package history_test

import (
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/history"
)

// totals is a running total beside each series, as a fold keeps it.
type totals struct{ of map[uint32][]int64 }

func (t *totals) Appended(_ int, i uint32, v *int64, fresh bool) {
	if fresh {
		t.of[i] = []int64{0}
	}
	sum := t.of[i][len(t.of[i])-1]
	if v != nil {
		sum += *v
	}
	t.of[i] = append(t.of[i], sum)
}

func (t *totals) Undone(_ int, i uint32, left int) { t.of[i] = t.of[i][:min(len(t.of[i]), left+1)] }

func (t *totals) Dropped(_ int, i uint32, n int) { t.of[i] = slices.Delete(t.of[i], 0, n) }

// none is what keys held before that began with nothing.
var none history.Held[int64]

// moody is a total that panics at thirteen.
type moody struct{ totals }

func (m *moody) Appended(si int, i uint32, v *int64, fresh bool) {
	if v != nil && *v == 13 {
		panic("thirteen")
	}
	m.totals.Appended(si, i, v, fresh)
}

// A total that panics at a key's first version leaves the others alone, that of the zero key, too.
func TestPanicOfATotal(t *testing.T) {
	h := history.New[int, int64](1)
	h.Add(&moody{totals{of: map[uint32][]int64{}}})
	h.Append(0, 0, none, history.Version[int64]{Seq: 1, Val: 1})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nobody panicked")
			}
		}()
		h.Append(0, 5, none, history.Version[int64]{Seq: 2, Val: 13})
	}()
	h.Append(0, 6, none, history.Version[int64]{Seq: 3, Val: 6})
	h.Append(0, 7, none, history.Version[int64]{Seq: 4, Val: 7})
	series := map[uint32]bool{}
	for _, key := range []int{0, 6, 7} {
		v, i := h.Series(0, key)
		if series[i] = true; len(v) != 1 {
			t.Errorf("key %d has %d versions", key, len(v))
		}
	}
	if v, _ := h.Series(0, 5); len(series) != 3 || len(v) != 0 || h.Len() != 3 {
		t.Errorf("%d series for three keys, %d versions; %d of the key whose total panicked", len(series), h.Len(), len(v))
	}
}

// A history equals a list of all versions that is filtered each time, and keeps
// not one version more.
func TestEqualsAFilteredList(t *testing.T) {
	for seed := range uint64(50) {
		r := rng.New(seed, 1)
		h, sums := history.New[int, int64](1), &totals{of: map[uint32][]int64{}}
		h.Add(sums)
		all := map[int][]history.Version[int64]{}
		reach, seq, now := int64(1+r.IntN(60)), int64(0), int64(0)
		for range 200 {
			// A batch, its keys in any order.
			batch := map[int][]history.Version[int64]{}
			for range 1 + r.IntN(20) {
				now += int64(r.IntN(3))
				k := r.IntN(8)
				batch[k] = append(batch[k], history.Version[int64]{Seq: seq, Time: now, Val: int64(r.IntN(100))})
				seq++
			}
			for k, versions := range batch {
				h.Append(0, k, none, versions...)
				all[k] = append(all[k], versions...)
			}
			h.Expire(seq-reach, now-reach)
			kept := 0
			for k, versions := range all {
				// Gone is what is too old by both, from the front of all versions on.
				want := slices.DeleteFunc(slices.Clone(versions), func(v history.Version[int64]) bool {
					return v.Seq < seq-reach && v.Time < now-reach
				})
				got, i := h.Series(0, k)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, key %d:\n got %v\nwant %v", seed, k, got, want)
				}
				kept += len(want)
				if len(got) == 0 {
					continue
				}
				from := history.SinceSeq(got, seq-reach/2)
				sum := int64(0)
				for _, v := range want {
					if v.Seq >= seq-reach/2 {
						sum += v.Val
					}
				}
				if running := sums.of[i]; running[len(running)-1]-running[from] != sum {
					t.Fatalf("seed %d, key %d: the totals differ by %d, the versions add up to %d", seed, k, running[len(running)-1]-running[from], sum)
				}
			}
			if h.Len() != kept {
				t.Fatalf("seed %d: %d versions are kept, %d are in reach", seed, h.Len(), kept)
			}
		}
	}
}

// Memory is bounded by what is in reach, however many keys come and go.
func TestKeysComeAndGo(t *testing.T) {
	h := history.New[int, int64](1)
	for seq := range int64(100_000) {
		h.Append(0, int(seq), none, history.Version[int64]{Seq: seq})
		h.Expire(seq-99, 1)
		if n := h.Len(); n > 100 {
			t.Fatalf("%d versions are kept at %d, 100 are in reach", n, seq)
		}
	}
	if h.Last(0, 99_999) == nil || h.Last(0, 5) != nil {
		t.Error("the newest key has no version, or one long ago has")
	}
}
