package sim

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// Workload is a program with parameters that make it small and quarrelsome.
type Workload struct {
	Program program.Program
	Params  map[string]string
	Events  int
}

// Story is a run that is to survive.
type Story struct {
	Seed     uint64
	Workload *Workload
	Scheme   engine.Scheme
	opts     engine.Options
	memory   int64 // for rows, or 0: enough
	r        *rng.RNG
}

// Ending is what is left of a run.
type Ending struct {
	State, Results storage.Hash
	Events         int
	Output         string
}

// String shortens the output.
func (e Ending) String() string {
	return fmt.Sprintf("%d events, state %s, results %s, %d bytes of output", e.Events, e.State, e.Results, len(e.Output))
}

// Draw makes the story of a seed.
func Draw(seed uint64, workloads []Workload) *Story {
	s := &Story{Seed: seed, r: rng.New(seed, 61)}
	s.Workload = &workloads[s.r.IntN(len(workloads))]
	s.opts.Checkpoints = checkpoint.Options{Every: int64(1 + s.r.IntN(4000)), SegmentSize: 4096, Inline: true, AllViews: true}
	s.shuffle()
	return s
}

// shuffle draws what may change from one life to the next.
func (s *Story) shuffle() {
	schemes, strategies := engine.Schemes(), schedule.Strategies()
	s.Scheme = schemes[s.r.IntN(len(schemes))]
	s.opts.Durability = s.Scheme
	s.opts.Workers = 1 + s.r.IntN(3)
	s.opts.Batch = 1 + s.r.IntN(40)
	s.memory = int64(s.r.IntN(2) * (1 + s.r.IntN(30_000)))
	s.opts.Strategy = strategies[s.r.IntN(len(strategies))].String()
}

// Expected returns how an undisturbed serial run ends, compared with the model.
func (w *Workload) Expected() (Ending, error) {
	return w.run(vfs.NewCrashable(), engine.Options{Workers: 1, Strategy: "serial", Verify: true}, 0)
}

// run runs the workload from wherever the disk has it.
//
// Rows beyond so many bytes are on a disk of their own: after a crash they count for nothing,
// and which ones they are is no matter of the seed.
func (w *Workload) run(fs vfs.FS, o engine.Options, memory int64) (e Ending, err error) {
	c, err := w.Program.Config(w.Params)
	if err != nil {
		return e, err
	}
	c.Events = w.Events
	in, err := w.Program.New(c)
	if err != nil {
		return e, err
	}
	if in.Close != nil {
		defer func() { err = errors.Join(err, in.Close()) }()
	}
	if memory > 0 {
		rows := &vfs.Memory{}
		in.App.LimitMemory(memory, func(table int) txn.RowLog { return spill.New(rows, fmt.Sprint("rows", table), 0) })
	}
	o.FS, o.Output, o.HashResults = fs, "out.jsonl", true
	m, err := engine.Run(context.Background(), in.App, in.Source, o)
	if err != nil {
		return e, err
	}
	f, err := fs.Open("out.jsonl")
	if err != nil {
		return e, err
	}
	text, err := io.ReadAll(f)
	return Ending{storage.StateHash(in.App), m.ResultsHash, m.Events, string(text)}, errors.Join(err, f.Close())
}

var errPower = errors.New("the power is gone")

// Live runs the workload through its lives, and returns how it ended and how often the
// power went.
func (s *Story) Live() (e Ending, crashes int, err error) {
	disk := vfs.NewCrashable()
	s.opts.State = "state"
	for lives := 1 + s.r.IntN(3); lives > 0; lives-- {
		faulty, end := vfs.NewFaulty(disk), s.r.IntN(60)
		if s.r.IntN(3) == 0 {
			end = s.r.IntN(600)
		}
		faulty.SetHook(func(op vfs.Op) error {
			if op.N >= end {
				return errPower
			}
			return nil
		})
		if _, err := s.Workload.run(faulty, s.opts, s.memory); err == nil {
			break
		} else if !errors.Is(err, errPower) {
			return e, crashes, err
		}
		crashes++
		if s.r.IntN(4) == 0 {
			disk.Kill()
		} else {
			disk.Crash(s.r)
		}
		s.shuffle()
	}
	e, err = s.Workload.run(disk, s.opts, s.memory)
	return e, crashes, err
}
