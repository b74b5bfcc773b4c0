package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/txn"
)

// Run executes the events of the source on the application until one of the
// ends that the package comment lists, and returns the account of what was
// done, also with an error. At the end of the source the error is nil; when ctx
// is cancelled it is ctx's. Sinks are called by the calling goroutine. An
// application runs once.
func Run(ctx context.Context, app *txn.App, source txn.Source, opts Options) (Metrics, error) {
	r, err := prepare(app, source, opts)
	if err != nil {
		return Metrics{}, err
	}
	ended := false
	defer func() {
		if !ended { // a sink or the source panicked: its files are free for another run
			_ = r.close()
		}
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err = r.recover(ctx); err == nil {
		if err = r.start(ctx); err == nil {
			err = r.loop(ctx)
		}
	}
	err = r.settle(err)
	runtime.ReadMemStats(&after)
	ended = true
	if cerr := r.close(); err == nil {
		err = cerr
	}
	r.m.Mallocs, r.m.Spilled = after.Mallocs-before.Mallocs, app.Traffic()
	if err == nil && r.verifier != nil {
		err = r.verifier.finish()
		r.m.Verified = err == nil
	}
	if failed := app.LogErr(); failed != nil {
		err = failed // whatever else there is comes of rows that are missing
	}
	return r.m, err
}

// prepare makes the runner of an application.
func prepare(app *txn.App, source txn.Source, opts Options) (*runner, error) {
	opts.setDefaults()
	strategy, err := opts.validate()
	if err != nil {
		return nil, err
	}
	if opts.MemoryLimit > 0 && !app.Limited() {
		if err := spill.Limit(app, opts.MemoryLimit, opts.FS, opts.State); err != nil {
			return nil, err
		}
	}
	bound, err := txn.Bind(app, opts.WorkersMax)
	if err != nil {
		return nil, err
	}
	return newRunner(bound, source, opts, strategy)
}

// firstBatch is the largest size of the first batch under auto, which runs serially:
// large enough for a judgement and, as an eighth of a batch, too small to matter.
// Smaller batches are not cut: there a whole one costs little.
const firstBatch = 512

// runner is the state of a run.
type runner struct {
	app      *txn.App
	bound    *txn.Bound
	opts     Options
	strategy schedule.Strategy
	chooser  chooser
	team     *team
	source   txn.Source // as it was given
	intake   intake     // from what of it is left, once the log is done again
	target   *target    // of latency, or nil
	epoch    *epoch     // of commits, or nil
	lastTime int64      // event time of the last event done; a batch may be open beyond it
	durable  *durable
	output   *linesFile    // results
	letters  *linesFile    // dead letters
	input    *txn.Position // where the source stands behind the last batch, if it told
	opened   int64         // when the first events of an open loop were due
	verifier *verifier
	graph    *graphPath
	serial   *txn.Serial
	batches  [2]*txn.Batch
	feeds    [2]*delivery
	m        Metrics
	began    int64 // when the batch in hand was begun
	sums     []paddedHash
	digests  []uint32
	sinks    bool
}

type paddedHash struct {
	storage.Hash
	_ [112]byte
}

func newRunner(bound *txn.Bound, source txn.Source, opts Options, s schedule.Strategy) (*runner, error) {
	r := &runner{
		app: bound.App, bound: bound, opts: opts, strategy: s, serial: bound.NewSerial(),
		m: newMetrics(&opts), sums: make([]paddedHash, opts.WorkersMax), sinks: bound.App.HasSinks(),
	}
	err := r.open(source)
	if err == nil {
		r.team, err = newTeam(opts.WorkersMax)
	}
	if err != nil {
		return nil, errors.Join(err, r.closeDurable())
	}
	for i := range r.batches {
		r.batches[i] = bound.NewBatch(i)
		r.feeds[i] = &delivery{feed: bound.App.NewFeed()}
	}
	r.team.resize(opts.Workers)
	r.graph = newGraphPath(r)
	r.chooser.listener = opts.Listener.Decided
	switch {
	case opts.LatencyTarget > 0:
		r.target = newTarget(opts.LatencyTarget, opts.Rate > 0)
	case opts.epochs:
		r.epoch = newEpoch(opts.MemoryLimit)
	}
	return r, nil
}

// start opens the intake.
func (r *runner) start(ctx context.Context) error {
	o := &r.opts
	r.chooser.moving = r.app.Traffic().Nanos
	source, err := r.continued()
	if err != nil {
		return err
	}
	switch {
	case o.Rate > 0:
		r.intake = newPaced(ctx, source, clock.System{}, o.Rate, o.Linger)
	case o.Linger > 0:
		chunk := o.Batch
		if r.target != nil { // batches may have to be small
			chunk = min(chunk, targetMin)
		}
		r.intake = newLingering(ctx, source, [2]*txn.Feed{r.app.NewFeed(), r.app.NewFeed()}, chunk, o.Linger)
	default:
		r.intake = &inline{ctx, source}
	}
	return nil
}

// startVerifier makes the model begin with the state as it is, if there is to be one.
func (r *runner) startVerifier() {
	if r.opts.Verify && r.verifier == nil {
		r.verifier = newVerifier(r.app, r.m.Events, r.lastTime)
	}
}

func (r *runner) close() error {
	r.chooser.end(r.graph.exec)
	if r.intake != nil {
		r.intake.close()
	}
	r.team.close()
	return r.closeDurable()
}

// open opens the state directory and the output, and finds the source of what is left
// to do.
func (r *runner) open(source txn.Source) error {
	o, length, letters := &r.opts, int64(0), int64(0)
	r.source = source
	if o.State != "" {
		began := clock.NowNanos()
		d, err := openDurable(r.bound, o)
		if err != nil {
			return err
		}
		r.durable, length, letters = d, d.start.Output, d.start.Letters
		if err := d.start.CheckOutput(o.Output); err != nil {
			return fmt.Errorf("state directory %s: %w", o.State, err)
		}
		r.stand(d.start)
		r.m.Resumed = d.start.Events
		r.m.RecoverySeconds = float64(clock.NowNanos()-began) / 1e9
	}
	if o.Start.Events > 0 {
		r.stand(o.Start)
		r.m.Resumed = o.Start.Events
		r.bound.Expire(o.Start.Events, o.Start.LastTime)
	}
	var err, failed error
	r.output, err = openLines(o.FS, "output", o.Output, length)
	r.letters, failed = openLines(o.FS, "dead letters", o.DeadLetters, letters)
	if o.DeadLetters != "" {
		r.bound.KeepRejections()
	}
	return errors.Join(err, failed)
}

// continued is the source of what is left to do.
func (r *runner) continued() (txn.Source, error) {
	done := r.m.Events
	if s, ok := r.source.(txn.Resumer); ok {
		if r.input == nil {
			return r.source, nil
		}
		return r.source, s.Resume(*r.input)
	}
	if done == 0 || r.opts.Start.Events > 0 {
		return r.source, nil
	}
	return &resuming{source: r.source, skip: done, skim: r.app.NewFeed()}, nil
}

// loop runs batch after batch. When workers had nothing to do in the last one,
// the next batch is fetched before this one executes, so that they can plan it
// meanwhile; else fetching it early would only make its events wait.
func (r *runner) loop(ctx context.Context) error {
	cur, next := 0, 1
	r.fetch(cur)
	for {
		d := r.feeds[cur]
		if d.feed.Len() == 0 && d.feed.Discards() == 0 {
			return r.ended(ctx, d.err)
		}
		last := d.err
		ahead := last == nil && r.graph.idled
		if ahead {
			r.fetch(next)
		} else {
			r.feeds[next].reset()
		}
		if err := r.batch(cur, next); err != nil {
			return err
		}
		d.reset()
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case last != nil:
			d.err = last
		case ahead:
			cur, next = next, cur
		default: // into the same memory, which is in the caches
			r.fetch(cur)
		}
	}
}

// fetch gets the next batch's events and opens the batch.
func (r *runner) fetch(i int) {
	began := clock.NowNanos()
	d := r.feeds[i]
	d.reset()
	r.intake.next(d, r.batchMax())
	r.batches[i].Open(d.feed)
	r.graph.opened(i)
	r.pause(began)
}

// pause leaves the time since began out of latencies: it was spent on behalf of
// the source, or of a comparison with the serial model. With a source of its own
// pace (Linger), waiting for it is part of an event's latency.
func (r *runner) pause(began int64) {
	if r.opts.Linger == 0 && r.opts.Rate == 0 {
		for _, d := range r.feeds {
			for i := range d.marks {
				d.marks[i].nanos += max(0, clock.NowNanos()-max(began, d.marks[i].nanos))
			}
		}
	}
}

// batchMax is the size of the next batch.
func (r *runner) batchMax() int {
	if r.strategy.Kind() == schedule.Auto && r.m.Batches == 0 && r.opts.Batch >= firstBatch {
		return min(r.opts.Batch/8, firstBatch)
	}
	if r.target != nil {
		return r.target.size(r.opts.Batch)
	}
	if r.epoch != nil {
		return r.epoch.size
	}
	return r.opts.Batch
}

func (r *runner) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if sourceEnded(err) {
		return nil
	}
	return err
}

// batch takes one batch through all steps.
func (r *runner) batch(cur, next int) error {
	x, d := r.batches[cur], r.feeds[cur]
	r.began = clock.NowNanos()
	x.First = r.m.Events
	if r.durable != nil {
		r.durable.commit(x, d.feed)
	}
	x.BeginResults()
	info := BatchInfo{Number: r.m.Batches}
	p := r.execute(cur, next, &info)
	if err := r.app.LogErr(); err != nil { // rows may be missing: nothing of the batch counts
		return err
	}
	if r.durable != nil && p == nil {
		if err := r.note(x, &info); err != nil {
			return err
		}
	}
	return r.release(x, d, p, &info)
}

// execute runs an open batch under the strategy of the run, or under one that is
// chosen for it, and returns the earliest panic that a serial run would have met.
func (r *runner) execute(cur, next int, info *BatchInfo) *txn.Panic {
	x, s := r.batches[cur], r.strategy
	if x.Events == 0 { // there are dead letters only, or its first event cannot be
		info.Strategy = "none"
		return x.Cut
	}
	if s.Kind() == schedule.Auto {
		s = r.chooser.choose(x.Events, r.opts.Workers, r.m.Batches, r.graph.exec)
		info.chosen = true
	}
	info.Strategy = s.String()
	if s.Kind() == schedule.Serial {
		return r.serial.Run(x, r.verifier != nil)
	}
	return r.graph.execute(cur, next, s, info)
}

// release lets everybody hear of a batch that was executed, once it is safe.
func (r *runner) release(x *txn.Batch, d *delivery, p *txn.Panic, info *BatchInfo) error {
	done := x.Events
	if p != nil {
		done = p.Event
	}
	hashing := clock.NowNanos()
	r.hashResults(x, done)
	r.began += clock.NowNanos() - hashing // for whoever compares runs: not part of the work
	r.pause(hashing)
	info.count(x, done)
	if err := r.secure(x, info, p == nil); err != nil {
		return err
	}
	if r.sinks {
		x.Deliver(done)
		if err := r.app.LogErr(); err != nil { // sinks look at rows, too
			return err
		}
	}
	now := clock.NowNanos()
	info.Nanos = now - r.began
	r.account(x, d, now, info)
	if info.chosen {
		r.chooser.took(x, info, r.graph)
		r.m.ChoosingNs += r.chooser.nanos
		if r.opts.Rate == 0 {
			r.m.Seconds += float64(r.chooser.nanos) / 1e9
		}
	}
	if err := r.verify(x, done, p); err != nil {
		return err
	}
	r.pause(now)
	if err := r.keep(x); err != nil {
		return err
	}
	r.app.Tidy()
	if p != nil {
		return &PanicError{Event: r.m.Events, What: p.What, Name: p.Name, Value: p.Value, Stack: p.Stack}
	}
	return nil
}

// count tells what became of the first done events of a batch.
func (info *BatchInfo) count(x *txn.Batch, done int) {
	info.Events, info.Ops = done, x.Ops
	for e := range done {
		if x.Committed(e) {
			info.Committed++
		}
	}
	info.Aborted = done - info.Committed
}

// account adds a batch to the metrics.
func (r *runner) account(x *txn.Batch, d *delivery, now int64, info *BatchInfo) {
	done := info.Events
	if x.Times != nil && done > 0 {
		r.lastTime = x.Times[done-1]
	}
	m := &r.m
	m.Batches++
	m.Events += done
	m.Committed += info.Committed
	m.Aborted += info.Aborted
	m.Ops += x.Ops
	m.Discarded += info.Discarded
	if at, ok := x.Feed().Position(); ok && done == x.Feed().Len() {
		r.input = &at
	}
	m.Redone += info.Redone
	m.Kept = r.app.Kept()
	m.KeptMax = max(m.KeptMax, m.Kept)
	m.Moved += info.Moved
	m.Seconds += float64(info.Nanos) / 1e9
	m.Strategies[info.Strategy]++
	longest := r.latencies(d, done, now)
	if r.target != nil {
		r.target.took(done, info.Nanos, longest)
	}
	if r.epoch != nil && !r.durable.dir.Writing() { // else the disk is slow for a while only
		r.epoch.took(done, info.Nanos, info.waited)
		m.Batch = max(m.Batch, r.epoch.size)
	}
	if r.opts.Rate > 0 { // an engine that waits for events takes as long as they do
		if r.opened == 0 && len(d.marks) > 0 {
			r.opened = d.marks[0].nanos
		}
		m.Seconds = float64(now-r.opened) / 1e9
	}
	if r.opts.Listener.BatchDone != nil {
		info.Digests, info.After = r.digests, r.point()
		r.opts.Listener.BatchDone(*info)
	}
}

// latencies records those of the first done events and returns the longest.
func (r *runner) latencies(d *delivery, done int, now int64) (longest int64) {
	from := 0
	record := func(latency int64, n int) {
		longest = max(longest, latency)
		if !r.opts.NoLatency {
			// Out of range can only be above ten minutes, which then counts as that.
			_ = r.m.Latency.RecordValues(min(latency, r.m.Latency.HighestTrackableValue()), int64(n))
		}
	}
	for _, k := range d.marks {
		upTo := min(k.upTo, done)
		switch {
		case upTo <= from:
		case k.gap == 0:
			record(now-k.nanos, upTo-from)
		default:
			for i := range upTo - from {
				record(max(0, now-k.nanos-int64(float64(i)*k.gap)), 1)
			}
		}
		from = k.upTo
	}
	return longest
}

// hashResults adds the results of the first done events to the run's sum. An
// item is the event's number and its result, so that the order counts.
func (r *runner) hashResults(x *txn.Batch, done int) {
	if !r.opts.HashResults {
		return
	}
	if r.opts.Digests {
		r.digests = slices.Grow(r.digests[:0], done)[:done]
	}
	const chunk = 1024
	r.team.share((done+chunk-1)/chunk, func(worker, i int) {
		var buf []byte
		for e := i * chunk; e < min((i+1)*chunk, done); e++ {
			result := r.result(x, worker, e)
			buf = binary.LittleEndian.AppendUint64(buf[:0], uint64(r.m.Events+e))
			r.sums[worker].Add(append(buf, result...))
			if r.opts.Digests {
				r.digests[e] = uint32(xxh3.Hash(result)) ^ uint32(x.Verdict(e))
			}
		}
	})
	for i := range r.sums {
		r.m.ResultsHash.Sum(r.sums[i].Hash)
		r.sums[i].Hash = storage.Hash{}
	}
}

// result returns the byte form of an event's result, valid until the worker's
// next.
func (r *runner) result(x *txn.Batch, worker, e int) []byte {
	return x.Result(r.graph.exec, worker, e)
}

func (r *runner) verify(x *txn.Batch, done int, p *txn.Panic) error {
	if r.verifier == nil {
		return nil
	}
	return r.verifier.batch(x, x.Feed(), r.m.Events-done, done, p, func(e int) []byte {
		return x.Result(r.graph.exec, 0, e)
	})
}

// Interrupted reports whether the error of Run is that of a cancelled context,
// which is not a failure: everything up to the last batch is done.
func Interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
