package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/source"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// ingestCourse measures runs from end to end: events are read from a file, logged,
// executed, and their results written. The time is that of the whole run, reading
// included.
func ingestCourse(m *Measuring) (err error) {
	dir, err := os.MkdirTemp("", "heddle-ingest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := Point{Program: "sl", Params: map[string]string{"keys": "100000"}, Events: 5 * m.Scale.Events}
	for i, format := range []string{"bin", "jsonl"} {
		m.tell(i, 2, format)
		if err := m.ingest(p, dir, format); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// ingest measures one format: as fast as it goes, at half of that, and next to idle.
func (m *Measuring) ingest(p Point, dir, format string) error {
	s, err := m.spec(p)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "events."+format)
	if err := writeEvents(&s, name); err != nil {
		return err
	}
	n := 0
	run := func(rate float64, events int) (*Result, float64, error) {
		n++
		s.Options.Rate = rate
		s.Options.State, s.Options.Durability = filepath.Join(dir, fmt.Sprint("state-", format, n)), engine.Views
		s.Options.Output = filepath.Join(dir, "out.jsonl")
		s.Wrap = func(in *program.Instance) error {
			files, err := source.Open(in.App, name, source.Options{})
			if err != nil {
				return err
			}
			in.Source, in.Check, in.Close = &firstOf{files, events}, nil, files.Close
			return nil
		}
		began := clock.NowNanos()
		r, err := runQuietly(m.Ctx, s)
		return r, float64(clock.NowNanos()-began) / 1e9, err
	}
	var rates []float64
	for range m.Scale.Reps {
		r, seconds, err := run(0, p.Events)
		if err != nil {
			return err
		}
		rates = append(rates, float64(r.Events)/seconds)
	}
	peak := Median(rates)
	half, _, err := run(peak/2, int(peak))
	if err != nil {
		return err
	}
	idle, _, err := run(200, 400)
	if err != nil {
		return err
	}
	return m.Emit(Line{
		Experiment: m.Name, Point: "sl from " + format + ", views, results written", Strategy: half.Strategy, Workers: half.Workers, Reps: m.Scale.Reps,
		EventsPerSec: peak, NsPerEvent: 1e9 / peak,
		Values: map[string]float64{"half_load_p99_ms": half.LatencyUs.P99 / 1e3, "idle_p99_ms": idle.LatencyUs.P99 / 1e3, "idle_p50_ms": idle.LatencyUs.P50 / 1e3},
	})
}

// writeEvents writes a program's events to a file.
func writeEvents(s *Spec, name string) (err error) {
	in, err := s.instance()
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rec := source.NewRecorder(f, name, in.App, in.Source)
	feed := in.App.NewFeed()
	for err == nil {
		feed.Reset()
		err = rec.Fill(context.Background(), feed, engine.BatchDefault)
		if failed := rec.Batch(feed.Len()); failed != nil {
			return failed
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return rec.Close(storage.Hash{}, storage.Hash{})
}

// firstOf is the first events of a source.
type firstOf struct {
	txn.Source
	left int
}

// Fill implements [txn.Source].
func (f *firstOf) Fill(ctx context.Context, feed *txn.Feed, limit int) error {
	had := feed.Len()
	err := f.Source.Fill(ctx, feed, min(limit, f.left))
	if f.left -= feed.Len() - had; f.left == 0 && err == nil {
		err = io.EOF
	}
	return err
}
