package operators

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/window"
)

// memoryOf is a store that wants memory, and has to go to disk when it gets less.
type memoryOf struct {
	window.Store
	wants, limit int64
	stats        window.Stats
}

func (s *memoryOf) Stats() window.Stats { return s.stats }

func (s *memoryOf) Resize(limit int64) (int64, error) {
	s.limit = max(limit, window.LimitMin)
	return s.limit, nil
}

func (s *memoryOf) work() {
	if s.stats.MemoryBytes = min(s.wants, s.limit); s.wants > s.limit {
		s.stats.Spills++
	}
}

// Memory goes to those who are short of it, from those who do not use theirs, and comes back; there is never
// more than was there first.
func TestMemoryMoves(t *testing.T) {
	const share = 10 << 20
	lent, returned := 0, 0
	for seed := range uint64(200) {
		r, a := rng.New(seed, 1), arbiter{}
		var stores []*memoryOf
		for range 2 + r.IntN(6) {
			s := &memoryOf{limit: share}
			stores = append(stores, s)
			a.accounts = append(a.accounts, account{store: s, share: share, limit: share})
		}
		for range 20 {
			for _, s := range stores {
				s.wants = []int64{0, share / 4, share, 3 * share}[r.IntN(4)]
			}
			for range 3 * arbiterRest { // until all is settled
				for _, s := range stores {
					s.work()
				}
				if err := a.divide(); err != nil {
					t.Fatal(err)
				}
			}
			total := a.spare
			for i, s := range stores {
				total += s.limit
				if s.limit != a.accounts[i].limit || s.limit < window.LimitMin || s.wants > s.limit && s.limit < share*3/4 {
					t.Fatalf("seed %d: store %d wants %d and has %d, %d are written down", seed, i, s.wants, s.limit, a.accounts[i].limit)
				}
				if s.limit > share*9/8 {
					lent++
				}
				if s.wants == share && s.limit >= share*7/8 {
					returned++
				}
			}
			if total != int64(len(stores))*share || a.spare < 0 {
				t.Fatalf("seed %d: %d bytes of %d, %d spare", seed, total, int64(len(stores))*share, a.spare)
			}
		}
	}
	if lent < 1000 || returned < 1000 {
		t.Errorf("%d times somebody had more than a share, %d times a share was there again", lent, returned)
	}
}
