package bench

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/trace"
)

// traceCourse measures how large traces are and how fast one core reads them.
func traceCourse(m *Measuring) error {
	s, err := m.spec(Point{Program: "sl", Params: map[string]string{"keys": "100000"}, Events: 5 * m.Scale.Events})
	if err != nil {
		return err
	}
	file, err := recordInMemory(m.Ctx, &s)
	if err != nil {
		return err
	}
	var nanos []float64
	for i := range m.Scale.Reps {
		m.tell(i, m.Scale.Reps, "reading")
		if err := m.Ctx.Err(); err != nil {
			return err
		}
		took, err := readTrace(&s, file)
		if err != nil {
			return err
		}
		nanos = append(nanos, took/float64(s.Events))
	}
	return m.Emit(Line{
		Experiment: m.Name, Point: "sl, read by one core", Strategy: "none", Reps: m.Scale.Reps, NsPerEvent: Median(nanos), EventsPerSec: 1e9 / Median(nanos),
		Values: map[string]float64{"bytes_per_event": float64(len(file)) / float64(s.Events), "million_events_per_sec": 1e3 / Median(nanos)},
	})
}

// recordInMemory records a program's events, digests of results included, whatever
// those would be.
func recordInMemory(ctx context.Context, s *Spec) ([]byte, error) {
	in, err := s.instance()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, trace.Describe(in.App))
	if err != nil {
		return nil, err
	}
	rec := trace.NewRecorder(w, in.App, in.Source)
	feed, digests := in.App.NewFeed(), make([]uint32, engine.BatchDefault)
	for i := range digests { // as hard to compress as digests are
		digests[i] = uint32(i) * 2654435761
	}
	for err == nil {
		feed.Reset()
		err = rec.Fill(ctx, feed, engine.BatchDefault)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failed := rec.Batch(feed.Len(), digests[:feed.Len()], trace.Point{}); failed != nil {
			return nil, failed
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	err = rec.Close(storage.Hash{}, storage.Hash{})
	return out.Bytes(), err
}

// readTrace reads all batches of a trace and returns how long that took.
func readTrace(s *Spec, file []byte) (float64, error) {
	in, err := s.instance()
	if err != nil {
		return 0, err
	}
	began := clock.NowNanos()
	t, err := trace.NewReader(bytes.NewReader(file), "memory")
	if err != nil {
		return 0, err
	}
	defer t.Close()
	feed := in.App.NewFeed()
	for err == nil {
		feed.Reset()
		err = t.Batch(feed)
	}
	if !errors.Is(err, io.EOF) {
		return 0, err
	}
	return float64(clock.NowNanos() - began), nil
}
