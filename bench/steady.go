package bench

import (
	"fmt"
	"runtime"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// steadyCourse measures what memory a run holds beside its rows, once it has run for a
// while and at its end, when nothing must have been added.
func steadyCourse(m *Measuring) error {
	strategies := []string{"auto", "serial", "ns-op-eager", "ns-chain-lazy", "bfs-op-eager", "lock"}
	for i, strategy := range strategies {
		m.tell(i, len(strategies), strategy)
		s, err := m.spec(Point{Program: "sl", Params: map[string]string{"keys": "100000", "abort": "5"}, Events: 10 * m.Scale.Events})
		if err != nil {
			return err
		}
		s.Options.Strategy = strategy
		h := &heapWatch{}
		s.Wrap = func(in *program.Instance) error {
			h.before = liveHeap(in.App)
			s.Options.Listener.BatchDone = func(b engine.BatchInfo) { h.done(in.App, &b) }
			return nil
		}
		runtime.GC()
		r, err := RunPrepared(m.Ctx, &s)
		if err != nil {
			return err
		}
		if err := m.Emit(Line{
			Experiment: m.Name, Point: fmt.Sprintf("sl, %d events", r.Events), Strategy: strategy, Reps: 1, Workers: r.Workers,
			EventsPerSec: r.EventsPerSec, NsPerEvent: 1e9 / r.EventsPerSec, AllocsPerEvent: r.AllocsPerEvent, Batches: r.Metrics.Strategies,
			Values: map[string]float64{
				"heap_kb":                  float64(h.late-h.before) / 1e3,
				"heap_per_event_in_flight": float64(h.late-h.before) / float64(inFlight(r)),
				"growth_bytes_per_event":   float64(h.late-h.early) / float64(max(1, h.events-h.first)),
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// inFlight returns how many events the engine had in hand: one batch that runs serially, or
// one that executes while the next is planned.
func inFlight(r *Result) int {
	if r.Metrics.Strategies["serial"] == r.Metrics.Batches {
		return r.Batch
	}
	return 2 * r.Batch
}

// heapWatch looks at the heap after half a million events, and near the end.
type heapWatch struct {
	before, early, late int64
	events, first       int // events so far, and at the first look
}

func (h *heapWatch) done(app *txn.App, b *engine.BatchInfo) {
	const every = 1 << 19
	was := h.events / every
	if h.events += b.Events; h.events/every == was {
		return
	}
	h.late = liveHeap(app)
	if h.early == 0 {
		h.early, h.first = h.late, h.events
	}
}

// liveHeap returns how many bytes are reachable. The application is, because it is asked
// for something behind that.
func liveHeap(app *txn.App) int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	runtime.KeepAlive(app)
	return int64(s.HeapAlloc)
}
