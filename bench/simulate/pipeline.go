package simulate

import (
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/txn"
)

// pipeline takes batches through the engine's steps on one worker, each of them
// by itself, so that it can be timed and the graph looked at in between.
type pipeline struct {
	bound   *txn.Bound
	x       *txn.Batch
	graph   tpg.Graph
	exec    *txn.Executor
	run     *schedule.Run
	install tpg.Installer
	guesser tpg.Guesser
	first   int // number of the batch's first event
	tasks   []task
	sinks   bool
}

// task is a shard of a table: the unit in which linking and installing are
// shared out.
type task struct{ table, shard, accesses int }

// steps are times in ns of one batch.
type steps struct{ plan, seal, link, start, drive, emit, install, deliver float64 }

func newPipeline(app *txn.App) (*pipeline, error) {
	b, err := txn.Bind(app, 1)
	if err != nil {
		return nil, err
	}
	return &pipeline{bound: b, x: b.NewBatch(0), exec: b.NewExecutor(), run: schedule.NewRun(1), sinks: app.HasSinks()}, nil
}

// watch tells the time since it was last asked.
type watch int64

func newWatch() watch { return watch(clock.NowNanos()) }

func (w *watch) lap() float64 {
	now := clock.NowNanos()
	d := now - int64(*w)
	*w = watch(now)
	return float64(d)
}

// accesses returns how many accesses the batch has.
func (p *pipeline) accesses() int {
	n := 0
	for _, k := range p.tasks {
		n += k.accesses
	}
	return n
}

// build plans and links the feed's events.
func (p *pipeline) build(feed *txn.Feed, t *steps) *txn.Panic {
	w := newWatch()
	x := p.x
	x.Open(feed)
	x.First = p.first
	x.BeginResults()
	for r := range x.RegionCount() {
		x.PlanRegion(r)
	}
	t.plan = w.lap()
	x.Seal(false)
	t.seal = w.lap()
	p.graph.Reset(x)
	p.tasks = p.tasks[:0]
	for table := range x.Tables() {
		for shard := range x.Shards(table) {
			c := x.Resolve(table, shard)
			p.graph.Link(c)
			p.tasks = append(p.tasks, task{table, shard, len(c.IDs)})
		}
	}
	p.exec.Use(x)
	p.guesser.Place(&p.graph, x, p.exec)
	t.link = w.lap()
	return x.Panic
}

// execute runs the batch under a strategy, through the given executor.
func (p *pipeline) execute(s schedule.Strategy, grain schedule.Grain, x schedule.Executor, t *steps) {
	w := newWatch()
	p.run.Start(&p.graph, x, s, p.x.Src, p.x.Fail, grain)
	t.start = w.lap()
	p.run.Drive(0)
	t.drive = w.lap()
}

// finish computes the results and installs the versions of the batch.
func (p *pipeline) finish(t *steps) *txn.Panic {
	w := newWatch()
	if f := p.exec.FirstPanic(); f != nil {
		return f
	}
	for r := range p.x.RegionCount() {
		if f := p.exec.Emit(0, r, p.x.Events); f != nil {
			return f
		}
	}
	t.emit = w.lap()
	limit := uint32(p.x.Events)
	if p.x.NeedsPreparing() {
		p.install.PrepareLate(p.x, p.exec, limit)
		for _, k := range p.tasks {
			p.install.Prepare(p.x, k.table, k.shard, limit)
		}
	}
	p.install.Late(p.x, p.exec, limit)
	for _, k := range p.tasks {
		p.install.Shard(p.x, k.table, k.shard, limit)
	}
	p.first += p.x.Events
	p.x.Expire(p.x.Events)
	t.install = w.lap()
	if p.sinks {
		p.x.Deliver(p.x.Events)
	}
	t.deliver = w.lap()
	return nil
}
