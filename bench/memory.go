package bench

import (
	"fmt"
	"runtime"
	"strconv"
)

// memoryCourse measures what it costs when rows do not fit into memory, from little of it to
// enough.
func memoryCourse(m *Measuring) error {
	const keys = 1_000_000 // accounts and as many book entries
	limits := []int64{80, 96, 128, 192, 0}
	skews := []string{"0", "0.9"}
	for i, skew := range skews {
		var lines []Line
		hash, loop := "", 0.0
		for j, mib := range limits {
			m.tell(i*len(limits)+j, len(skews)*len(limits), fmt.Sprintf("skew %s, %d MiB", skew, mib))
			s, err := m.spec(Point{Program: "sl", Params: map[string]string{"keys": strconv.Itoa(keys), "skew": skew}, Events: 2 * m.Scale.Events})
			if err != nil {
				return err
			}
			if j == 0 {
				nanos, err := loopNanos(&s) // which has all rows in memory
				if err != nil {
					return err
				}
				loop = float64(nanos) / float64(s.Events)
			}
			s.Options.MemoryLimit = mib << 20
			best, err := fastest(m, s)
			if err != nil {
				return err
			}
			if j > 0 && best.StateHash != hash {
				return fmt.Errorf("with %d MiB the final state is %s, with less memory it was %s", mib, best.StateHash, hash)
			}
			hash = best.StateHash
			x := strconv.FormatInt(mib, 10)
			if mib == 0 {
				x = "enough"
			}
			lines = append(lines, Line{
				Experiment: m.Name, Point: fmt.Sprintf("sl, %d rows, skew %s, %s MiB", 2*keys, skew, x), X: x, Strategy: "auto", Reps: m.Scale.Reps, Workers: runtime.GOMAXPROCS(0),
				EventsPerSec: best.EventsPerSec, NsPerEvent: 1e9 / best.EventsPerSec, AllocsPerEvent: best.AllocsPerEvent, Batches: best.Metrics.Strategies,
				SerialLoopRatio: loop * best.EventsPerSec / 1e9, LoopsNsPerEvent: map[string]float64{"go maps": loop},
				Values: map[string]float64{
					"rows_on_disk": float64(best.SpilledRows) / (2 * keys), "rows_in_per_event": float64(best.RowsIn) / float64(best.Events),
				},
			})
		}
		enough := lines[len(lines)-1].EventsPerSec
		for _, l := range lines {
			l.Values["over_enough"] = l.EventsPerSec / enough
			if err := m.Emit(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// fastest runs something as often as the scale says and returns the run that took least.
func fastest(m *Measuring, s Spec) (best *Result, err error) {
	for range m.Scale.Reps {
		r, err := runQuietly(m.Ctx, s)
		if err != nil {
			return nil, err
		}
		if best == nil || r.Seconds < best.Seconds {
			best = r
		}
	}
	return best, nil
}
