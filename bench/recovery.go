package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// recoveryPoints are the settings under which schemes are compared: those of the
// published experiment, the one of the target for the cost of a log, and no work at
// all. The batch that is under way in a crash has no view, so there are some.
func recoveryPoints(s Scale) []Point {
	point := func(work, keys string, events, batch int) Point {
		return Point{
			Name: fmt.Sprintf("sl, %s, 30 %% aborts, batch %d", work, batch), X: work, Program: "sl", Events: events, Batch: batch,
			Params: map[string]string{"keys": keys, "skew": "0.45", "deposit": "50", "abort": "30", "complexity": work},
		}
	}
	return []Point{
		point("8us", "491520", 12*4096, 4096),
		point("1us", "100000", 6*16_384, 16_384),
		point("0s", "100000", s.Events, 4096),
	}
}

// crashed is what a run under a scheme, broken off before its end, and the recovery
// from it came to.
type crashed struct {
	run, recovery []float64 // seconds, by repetition
	bytes         int64     // logged
	batches       map[string]int
	state         storage.Hash
}

// recoveries returns how often a point is measured: without work a recovery takes less than
// a tenth of a second, of which other programs easily take a part.
func (p *Point) recoveries(s Scale) int {
	if p.X == "0s" {
		return 5 * s.Reps
	}
	return min(3, s.Reps)
}

// recoveryCourse measures what each scheme costs while a run goes on, and how long
// it takes to come back from its log. A run loses its disk after the last batch.
func recoveryCourse(m *Measuring) error {
	points := recoveryPoints(m.Scale)
	done, reps := 0, 0
	for _, p := range points {
		reps += p.recoveries(m.Scale)
	}
	all := reps
	for _, p := range points {
		reps = p.recoveries(m.Scale)
		seen := map[engine.Scheme]*crashed{}
		for range reps {
			for _, scheme := range engine.Schemes() {
				m.tell(done, all, p.Name+", "+string(scheme))
				if seen[scheme] == nil {
					seen[scheme] = &crashed{}
				}
				if err := m.crash(p, scheme, seen[scheme]); err != nil {
					return fmt.Errorf("%s, %s: %w", p.Name, scheme, err)
				}
				if seen[scheme].state != seen[engine.NoLog].state {
					return fmt.Errorf("%s: %s recovers to state %s, %s to %s", p.Name, scheme, seen[scheme].state, engine.NoLog, seen[engine.NoLog].state)
				}
			}
			done++
		}
		for _, scheme := range engine.Schemes() {
			if err := m.Emit(recoveryLine(m.Name, &p, reps, scheme, seen)); err != nil {
				return err
			}
		}
	}
	return nil
}

// recoveryLine compares a scheme with running without a log and with command, in
// pairs of one repetition.
func recoveryLine(experiment string, p *Point, reps int, scheme engine.Scheme, seen map[engine.Scheme]*crashed) Line {
	c := seen[scheme]
	seconds := Median(c.run)
	l := Line{
		Experiment: experiment, Point: p.Name, X: p.X, Strategy: string(scheme), Reps: reps, Batches: c.batches,
		EventsPerSec: float64(p.Events) / seconds, NsPerEvent: seconds * 1e9 / float64(p.Events),
		Values: map[string]float64{
			"throughput_over_none": medianRatio(seen[engine.NoLog].run, c.run),
			"log_bytes_per_event":  float64(c.bytes) / float64(p.Events),
		},
	}
	if scheme != engine.NoLog { // which has nothing to come back from
		l.Values["recovery_ms"] = 1e3 * Median(c.recovery)
		l.Values["recovery_over_command"] = medianRatio(seen[engine.Command].recovery, c.recovery)
	}
	return l
}

var errBroken = errors.New("the disk is gone")

// crash runs a point under a scheme until all batches are done, takes the disk away,
// and recovers.
func (m *Measuring) crash(p Point, scheme engine.Scheme, c *crashed) (err error) {
	dir, err := os.MkdirTemp("", "heddle-recovery-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := m.spec(p)
	if err != nil {
		return err
	}
	disk := vfs.NewFaulty(vfs.Disk{})
	s.Bare = true
	s.Options.State, s.Options.Durability, s.Options.FS = filepath.Join(dir, "state"), scheme, disk
	left := p.Events
	s.Options.Listener.BatchDone = func(b engine.BatchInfo) {
		if left -= b.Events; left == 0 {
			disk.SetHook(func(vfs.Op) error { return errBroken })
		}
	}
	r, err := Run(m.Ctx, s)
	if !errors.Is(err, errBroken) {
		return errors.Join(errors.New("the run was not broken off"), err)
	}
	kept, err := checkpoint.Look(vfs.Disk{}, s.Options.State)
	if err != nil {
		return err
	}
	c.bytes = kept.LogBytes
	c.run = append(c.run, r.Seconds)
	s.Options.FS, s.Options.Listener.BatchDone = nil, nil
	if r, err = runQuietly(m.Ctx, s); err != nil {
		return err
	}
	if scheme != engine.NoLog && r.Resumed+r.Replayed != p.Events {
		return fmt.Errorf("%d of %d events came from the log", r.Replayed, p.Events)
	}
	c.recovery = append(c.recovery, r.Metrics.RecoverySeconds)
	c.batches, c.state = r.Metrics.Strategies, r.State
	return nil
}
