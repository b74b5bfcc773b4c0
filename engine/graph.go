package engine

import (
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// graphPath takes batches through planning, linking and execution in parallel.
type graphPath struct {
	r          *runner
	exec       *txn.Executor
	run        *schedule.Run
	graph      tpg.Graph
	tasks      []shardTask
	guesser    tpg.Guesser
	installers []tpg.Installer // by worker
	// Regions of each of the two batches that were claimed for planning.
	claimed [2]atomic.Int64
	done    [2]atomic.Int64
	nextAt  int     // the batch that idle workers may plan, or -1
	cost    float64 // ns per operation, smoothed
	perOp   float64 // ns per operation of the last batch
	idled   bool    // workers lacked work for a twentieth of the last execution
}

type shardTask struct{ table, shard int }

func newGraphPath(r *runner) *graphPath {
	g := &graphPath{r: r, exec: r.bound.NewExecutor(), installers: make([]tpg.Installer, r.opts.WorkersMax), nextAt: -1}
	for t := range r.batches[0].Tables() {
		for s := range r.batches[0].Shards(t) {
			g.tasks = append(g.tasks, shardTask{t, s})
		}
	}
	g.resize(r.opts.Workers)
	return g
}

// resize makes so many workers execute graphs.
func (g *graphPath) resize(workers int) {
	g.run = schedule.NewRun(workers)
	g.run.Meanwhile = g.planNext
}

// opened makes the regions of a batch free to be planned.
func (g *graphPath) opened(i int) {
	g.claimed[i].Store(0)
	g.done[i].Store(0)
}

// planRegion claims and plans one region of a batch.
func (g *graphPath) planRegion(i int) bool {
	region := int(g.claimed[i].Add(1)) - 1
	if region >= g.r.bound.Regions {
		return false
	}
	g.r.batches[i].PlanRegion(region)
	g.done[i].Add(1)
	return true
}

// planNext is what a worker without ready operations does.
func (g *graphPath) planNext(int) bool { return g.nextAt >= 0 && g.planRegion(g.nextAt) }

// execute runs the batch and installs what it committed, and returns the
// earliest panic that a serial run would have met.
func (g *graphPath) execute(cur, next int, s schedule.Strategy, info *BatchInfo) *txn.Panic {
	r, x := g.r, g.r.batches[cur]
	b := &r.m.Breakdown
	t0 := clock.NowNanos()
	r.team.do(func(int) {
		for g.planRegion(cur) {
		}
	})
	x.Seal(r.verifier != nil)
	if x.OnlySerial {
		return g.serially(x, info)
	}
	t1 := clock.NowNanos()
	b.Plan += t1 - t0
	g.graph.Reset(x)
	g.exec.Use(x)
	r.team.share(len(g.tasks), func(_, i int) {
		g.graph.Link(x.Resolve(g.tasks[i].table, g.tasks[i].shard))
	})
	g.guesser.Place(&g.graph, x, g.exec)
	t2 := clock.NowNanos()
	b.Build += t2 - t1
	g.nextAt = -1
	if r.feeds[next].feed.Len() > 0 {
		g.nextAt = next
	}
	grain := schedule.GrainFor(g.cost, x.Ops, x.Events, g.r.opts.Workers)
	if r.opts.drive != nil {
		grain = r.opts.grain
	}
	g.run.Start(&g.graph, g.exec, s, x.Src, x.Fail, grain)
	if r.opts.drive != nil {
		r.opts.drive(g.run)
	} else {
		r.team.do(g.run.Drive)
	}
	t3 := clock.NowNanos()
	g.executed(x, t3-t2, info)
	p := g.finish(x, info)
	b.Install += clock.NowNanos() - t3
	return p
}

// prepare has the functions run that commutative operations and folds need at the
// end of a batch. It returns false when the batch has to run serially: something
// panicked, and it takes a serial run to tell at which event that is. Nothing is
// installed yet.
func (g *graphPath) prepare(x *txn.Batch, first *txn.Panic, limit int) bool {
	if !x.NeedsPreparing() {
		return true
	}
	if first != nil && x.Cut == nil { // it may be that of a delta
		return false
	}
	var bad atomic.Bool
	careful := func(do func()) {
		defer func() {
			if recover() != nil {
				bad.Store(true)
			}
		}()
		do()
	}
	careful(func() { g.installers[0].PrepareLate(x, g.exec, uint32(limit)) })
	g.r.team.share(len(g.tasks), func(worker, i int) {
		careful(func() { g.installers[worker].Prepare(x, g.tasks[i].table, g.tasks[i].shard, uint32(limit)) })
	})
	if bad.Load() {
		x.ForgetVersions()
		return false
	}
	return true
}

// serially runs a batch that no graph can be built for, or of which only a serial
// run can tell how far it goes.
func (g *graphPath) serially(x *txn.Batch, info *BatchInfo) *txn.Panic {
	info.Strategy = "serial"
	plan := x.Panic // the batch ends before it
	if p := g.r.serial.Run(x, g.r.verifier != nil); p != nil {
		return p
	}
	return plan
}

// executed accounts for an execution that took the given wall time.
func (g *graphPath) executed(x *txn.Batch, nanos int64, info *BatchInfo) {
	s := g.run.Stats()
	b := &g.r.m.Breakdown
	b.Useful += s.UsefulNs
	b.Wait += s.WaitNs
	b.Abort += s.RepairNs
	b.Explore += max(0, nanos*int64(g.r.opts.Workers)-s.UsefulNs-s.WaitNs-s.RepairNs)
	info.Redone, info.Moved = s.Redone, s.Moved
	info.Stalls, info.Steals = s.Waits, s.Steals
	g.idled = s.WaitNs > nanos*int64(g.r.opts.Workers)/20
	g.r.m.Steals += s.Steals
	if x.Ops > 0 && s.UsefulNs > 0 {
		per := float64(s.UsefulNs) / float64(x.Ops)
		g.perOp = per
		if g.cost == 0 {
			g.cost = per
		}
		g.cost += 0.3 * (per - g.cost)
	}
}

// finish computes results and installs versions, of the events before the
// earliest panic only.
func (g *graphPath) finish(x *txn.Batch, info *BatchInfo) *txn.Panic {
	r := g.r
	x.SettleRejections()
	first := x.Panic
	if p := g.exec.FirstPanic(); p != nil {
		first = p
	}
	limit := x.Events
	if first != nil {
		limit = first.Event
	}
	var bad atomic.Pointer[txn.Panic]
	r.team.share(r.bound.Regions, func(worker, region int) {
		p := g.exec.Emit(worker, region, limit)
		for p != nil {
			was := bad.Load()
			if was != nil && was.Event < p.Event || bad.CompareAndSwap(was, p) {
				break
			}
		}
	})
	if p := bad.Load(); p != nil {
		first, limit = p, p.Event
	}
	if !g.prepare(x, first, limit) {
		return g.serially(x, info)
	}
	g.installers[0].Late(x, g.exec, uint32(limit))
	r.team.share(len(g.tasks), func(worker, i int) { g.installers[worker].Shard(x, g.tasks[i].table, g.tasks[i].shard, uint32(limit)) })
	return first
}
