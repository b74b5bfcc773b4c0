package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// checkpointCourse measures what a checkpoint of many rows does to latencies while it
// is written, and how fast it is loaded, beside reading the same bytes from the disk.
func checkpointCourse(m *Measuring) (err error) {
	dir, err := os.MkdirTemp("", "heddle-checkpoint-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	keys := 5_000_000 // accounts and as many book entries
	events := 15 * m.Scale.Events
	s, err := m.spec(Point{Program: "sl", Params: map[string]string{"keys": strconv.Itoa(keys)}, Events: events})
	if err != nil {
		return err
	}
	s.Options.Durability = engine.Views
	run := func(name string, every int64) (*Result, error) {
		s.Options.State = filepath.Join(dir, name)
		s.Options.Checkpoints = checkpoint.Options{Every: every}
		return runQuietly(m.Ctx, s)
	}
	m.tell(0, 3, "without checkpoints")
	without, err := run("without", 1<<50)
	if err != nil {
		return err
	}
	m.tell(1, 3, "with checkpoints")
	with, err := run("with", 4<<20)
	if err != nil {
		return err
	}
	m.tell(2, 3, "loading")
	loaded, err := run("with", 4<<20) // everything is done already
	if err != nil {
		return err
	}
	kept, err := checkpoint.Look(vfs.Disk{}, filepath.Join(dir, "with"))
	if err != nil {
		return err
	}
	disk, err := readSpeed(filepath.Join(dir, "with"), kept.Files)
	if err != nil {
		return err
	}
	load := float64(kept.Bytes) / loaded.Metrics.RecoverySeconds
	return m.Emit(Line{
		Experiment: m.Name, Point: fmt.Sprintf("sl, %d rows", 2*keys), Strategy: with.Strategy, Reps: 1, Workers: runtime.GOMAXPROCS(0),
		EventsPerSec: with.EventsPerSec, NsPerEvent: 1e9 / with.EventsPerSec,
		Values: map[string]float64{
			"p99_ms": with.LatencyUs.P99 / 1e3, "p99_without_ms": without.LatencyUs.P99 / 1e3, "p99_ratio": with.LatencyUs.P99 / without.LatencyUs.P99,
			"throughput_over_without": with.EventsPerSec / without.EventsPerSec, "checkpoint_mb": float64(kept.Bytes) / 1e6, "files": float64(len(kept.Files)),
			"load_seconds": loaded.Metrics.RecoverySeconds, "load_mb_per_sec": load / 1e6, "disk_read_mb_per_sec": disk / 1e6, "load_over_disk": load / disk,
		},
	})
}

// readSpeed reads files around the system's cache, if it lets us, and returns bytes per
// second.
func readSpeed(dir string, names []string) (float64, error) {
	began, bytes := clock.NowNanos(), int64(0)
	for _, name := range names {
		f, err := openDirect(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{f}, alignedBuffer())
		if err := errors.Join(err, f.Close()); err != nil {
			return 0, err
		}
		bytes += n
	}
	return float64(bytes) * 1e9 / float64(clock.NowNanos()-began), nil
}
