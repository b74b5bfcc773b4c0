package peers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/keyed"
)

const (
	markedRows = 4 << 20
	marksMade  = markedRows / 10
)

// drawMarks returns rows of a table that change between two cuts, and how many different
// ones they are.
func drawMarks(table *keyed.Table[int64, int64], skew float64) (rows []uint32, distinct int) {
	r, z := rng.New(1, 1), rng.NewZipf(markedRows, skew)
	rows = make([]uint32, marksMade)
	for i := range rows {
		_, rows[i] = table.Ensure(int64(z.Draw(r) * 0x9e3779b1 % markedRows)) // not the hot ones side by side
	}
	return rows, len(slices.Compact(slices.Sorted(slices.Values(rows))))
}

// BenchmarkDirtyRows marks rows as changed and goes over them after a cut: with the marks of
// package keyed, and in roaring sets, one for each shard.
func BenchmarkDirtyRows(b *testing.B) {
	table := keyed.New[int64, int64]()
	for i := range int64(markedRows) {
		table.Load(i, i)
	}
	tracker := table.Track()
	var sum int64
	visit := func(_ *int64, v *int64) { sum += *v }
	for _, skew := range []float64{0, 0.9} {
		rows, distinct := drawMarks(table, skew)
		measure := func(b *testing.B, mark, take func()) {
			var marking, taking time.Duration
			for b.Loop() {
				began := time.Now()
				mark()
				marked := time.Now()
				take()
				marking, taking = marking+marked.Sub(began), taking+time.Since(marked)
			}
			b.ReportMetric(float64(marking.Nanoseconds())/float64(b.N)/marksMade, "ns/mark")
			b.ReportMetric(float64(taking.Nanoseconds())/float64(b.N)/float64(distinct), "ns/take")
		}
		b.Run(fmt.Sprintf("skew %g/bits", skew), func(b *testing.B) {
			measure(b, func() {
				for _, row := range rows {
					table.Changing(row)
				}
			}, func() {
				table.Cut(tracker)
				for shard := range keyed.Shards {
					for at := 0; at >= 0; {
						at = table.Take(tracker, shard, at, 1<<30, visit)
					}
				}
			})
		})
		b.Run(fmt.Sprintf("skew %g/roaring", skew), func(b *testing.B) {
			var sets [keyed.Shards]roaring.Bitmap
			measure(b, func() {
				for _, row := range rows {
					sets[row%keyed.Shards].Add(row / keyed.Shards)
				}
			}, func() {
				for shard := range sets {
					for it := sets[shard].Iterator(); it.HasNext(); {
						rec := table.At(it.Next()*keyed.Shards + uint32(shard))
						visit(&rec.Key, &rec.Val)
					}
					sets[shard].Clear()
				}
			})
		})
	}
	if sum == 0 {
		b.Error("nothing was taken")
	}
}
