package windowtest

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
)

// Limits is how much memory stores are tested with: the least there may be, little, and plenty.
var Limits = []int64{0, 2 * window.LimitMin, 64 << 20}

// numbersMax is how many bytes the numbers of windows take that there were at once, 64 for each.
const numbersMax = 64 * 2 * openMax

// Conform does 30,000 things at random to stores of each kind with each limit, and compares them with their
// models. After each of them it calls ended, before the store is closed.
func Conform(t *testing.T, stores window.Stores, seeds uint64, ended func(t *testing.T, k Kind, o window.Options, s window.Store)) {
	for _, k := range Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			for seed := range seeds {
				for i, limit := range Limits {
					o := window.Options{Limit: limit, FS: &vfs.Memory{}, Name: "w"}
					r, s := rng.New(seed, uint64(i)), k.Empty(t, stores, o)
					for n := range 30_000 {
						s.Step(t, r, n)
						if r.IntN(4000) == 0 { // never more than it had first
							_, err := s.Resize(Limits[r.IntN(i+1)])
							must(t, err)
						}
					}
					s.Check(t)
					ended(t, k, o, s)
					s.Clear(t)
					_, err := s.Resize(limit)
					must(t, err)
					if st := s.Stats(); st.MemoryBytes > numbersMax || st.DiskBytes > max(limit/4, window.LimitMin) { // a file that is not full
						t.Errorf("without windows there are %d bytes in memory, %d on disk", st.MemoryBytes, st.DiskBytes)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}
