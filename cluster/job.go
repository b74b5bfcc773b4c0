package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Runtime is where nodes live.
type Runtime interface {
	Transport
	// Reset ends all nodes at once. Nothing that they send comes after it.
	Reset() error
	// Start begins to start a node. What it sends to control goes where the runtime was told, and first of
	// all that it has started.
	Start(o Options) error
	// Close ends the nodes that have not come to their end, which happens after failures only, and waits for all.
	Close() error
}

// JobOptions are of a job. The zero value works.
type JobOptions struct {
	// Nodes is how many there are at the start. Default: 1
	Nodes int
	// Groups is the number of key groups, a power of two. Default: reconfig.GroupsDefault
	Groups int
	// Batch is the most events in a batch. Default: engine.BatchDefault
	Batch int
	// Interval is the time between two punctuations where events arrive by a Pace. Default: 5 ms
	Interval time.Duration
	// Pace tells how many events have arrived so many seconds after the start, whether the nodes keep up or
	// not. Default: the next events arrive when the nodes want them.
	Pace func(seconds float64) float64
	// Outstanding is the most events under way; then no more are taken, which is how somebody who waits for long
	// holds up the source. Default: 1 << 18
	Outstanding int
	// Replicas is the part of the groups of each node of which the next one keeps a copy, less than 0 for none. Default:
	// a half, if there is so much state that moving it takes long, and so few of it changes that this costs little.
	Replicas float64
	// Pause is about how long a group that moves may be nowhere. Default: 10 ms
	Pause time.Duration
	// LinkRate is what is known of the links between nodes, in bytes per second. Default: 100 MiB
	LinkRate float64
	// Controller, if set, is shown the job about every Sampling, which is a second by default, and may ask for changes.
	Controller reconfig.Controller
	Sampling   time.Duration
	// Keep, if set, is where the job keeps what it needs to go on when nodes die, and when it died itself and a
	// new one begins with the same Keep, application and source.
	Keep Keep
	// Checkpoints is the time between two of them. Default: 10 s
	Checkpoints time.Duration
	// Failed, if set, is told why a node died, when the job goes on.
	Failed func(error)
	// Completed, if set, is called for each event that comes to an end.
	Completed func(c Completion)
	// Changed, if set, is called when a request goes on to another state.
	Changed func(r Report)
}

// Job is an application on several nodes: it routes events, gets results, and has groups move. Run is for one
// goroutine, everything else for any.
type Job struct {
	o       JobOptions
	app     *txn.App
	intake  intake
	runtime Runtime
	box     *Mailbox // of what nodes send
	asks    *Mailbox // and of what others ask
	feed    *txn.Feed
	router  *Router
	owners  *reconfig.Owners
	nodes   []reconfig.Node

	start    int64 // by the clock
	seq      uint64
	batch    uint64
	next     int64 // when the next punctuation is due
	last     int64 // when the last event arrived that was taken
	ended    bool
	flight   flight
	progress map[reconfig.Node]*Progress
	leaving  map[reconfig.Node]uint64 // nodes that have no work from a batch on
	starting map[reconfig.Node]error  // nodes that are not there yet, or why they never will be
	up       int                      // nodes that started so far
	finals   int                      // and those that told their last word
	free     reconfig.Node            // the first number that no node had
	change   Change
	settings reconfig.Settings // that hold
	initial  *Checkpoint       // the beginning
	resumed  uint64            // events before this one were taken by a job before this one
	recovery recovery

	loads   []reconfig.Load
	touched []float64 // keys named, by group, since the last look
	looked  int64
	looks   int
	sampled int64                   // when the controller was shown the job last
	sample  *hdrhistogram.Histogram // latencies since then
	control requests
	out     Outcome
	sums    storage.Hash
	buf     []byte
	taken   []Message
}

// NewJob makes a job of an application, of which only the plans of its events are used here. The nodes' messages for
// control go into the mailbox.
func NewJob(app *txn.App, source txn.Source, o JobOptions, runtime Runtime, box *Mailbox) (*Job, error) {
	o.Nodes, o.Batch = max(o.Nodes, 1), cmp.Or(o.Batch, engine.BatchDefault)
	o.Groups, o.Outstanding = cmp.Or(o.Groups, reconfig.GroupsDefault), cmp.Or(o.Outstanding, 1<<18)
	o.Sampling, o.Checkpoints = cmp.Or(o.Sampling, time.Second), cmp.Or(o.Checkpoints, 10*time.Second)
	o.Interval, o.Pause, o.LinkRate = cmp.Or(o.Interval, 5*time.Millisecond), cmp.Or(o.Pause, 10*time.Millisecond), cmp.Or(o.LinkRate, 100<<20)
	j := &Job{o: o, app: app, intake: newIntake(app, source), runtime: runtime, box: box, asks: NewMailbox(), feed: app.NewFeed(), progress: map[reconfig.Node]*Progress{}, leaving: map[reconfig.Node]uint64{}, starting: map[reconfig.Node]error{}}
	for i := range o.Nodes {
		j.nodes = append(j.nodes, reconfig.Node(i))
	}
	var err error
	if j.owners, err = reconfig.Even(o.Groups, j.nodes); err != nil {
		return nil, err
	}
	j.initial = &Checkpoint{Nodes: j.nodes, Version: 1}
	for g := range o.Groups {
		j.initial.Owners = append(j.initial.Owners, j.owners.Of(reconfig.Group(g)))
	}
	j.loads, j.touched = make([]reconfig.Load, o.Groups), make([]float64, o.Groups)
	j.flight.affected = make([]bool, o.Groups)
	j.settings = reconfig.Settings{Logic: app.Logic()}
	j.initial.Settings = j.settings
	j.control = newRequests(j)
	j.out.Latency, j.sample = hdrhistogram.New(1000, int64(time.Hour), 3), hdrhistogram.New(1000, int64(time.Hour), 2)
	return j, nil
}

// Run runs until the source ends and all that was asked for is done, or the context is cancelled: then what is
// under way comes to its end first.
func (j *Job) Run(ctx context.Context) (*Outcome, error) {
	err := j.survive(j.begin())
	j.start = clock.NowNanos()
	j.next, j.last, j.looked, j.sampled = j.start, j.start, j.start, j.start
	for over := false; err == nil && !over; {
		err = j.loop(ctx)
		j.out.Events, j.out.Batches = int(j.seq), int(j.batch)
		j.out.Seconds = float64(clock.NowNanos()-j.start) / 1e9
		if over = err == nil; over {
			j.control.close()
			err = j.finish()
			over = err == nil
		}
		err = j.survive(err)
	}
	j.out.Resumed = int(j.resumed)
	j.control.close()
	j.out.Reports = j.control.reports()
	j.out.Results = j.sums
	return &j.out, errors.Join(err, j.runtime.Close(), ctx.Err())
}

// begin starts the first nodes, or those of a job that died.
func (j *Job) begin() error {
	if j.o.Keep == nil {
		return j.startAll(j.initial.Nodes, false)
	}
	return j.resume()
}

// newRouter makes the router of the nodes.
func (j *Job) newRouter(nodes []reconfig.Node) {
	j.router = NewRouter(0, j.app, j.owners, slices.Clone(nodes))
	j.router.Touched = func(seq uint64, g reconfig.Group) {
		j.touched[g]++
		if j.flight.affected[g] {
			j.flight.touch(seq)
		}
	}
}

// startNode begins to start a node, see startedAll.
func (j *Job) startNode(n reconfig.Node) {
	j.free = max(j.free, n+1)
	j.starting[n] = nil
	if err := j.runtime.Start(Options{Node: n, Owners: j.owners}); err != nil {
		j.started(n, err)
	}
}

// started takes note that a node has started, or of why it has not.
func (j *Job) started(n reconfig.Node, err error) {
	if err == nil {
		j.up++
		delete(j.starting, n)
	} else {
		j.starting[n] = fmt.Errorf("starting node %d: %w", n, err)
	}
}

// startedAll reports whether some of the nodes have not told yet whether they have started. When all have and not
// all did, it ends those that did and returns the first reason.
func (j *Job) startedAll(nodes []reconfig.Node) (waits bool, err error) {
	failed := map[reconfig.Node]bool{}
	for _, n := range nodes {
		if why, missing := j.starting[n]; missing && why == nil {
			return true, nil
		} else if missing {
			failed[n] = true
			err = cmp.Or(err, why)
		}
	}
	if err == nil {
		return false, nil
	}
	for _, n := range nodes {
		delete(j.starting, n)
		if !failed[n] {
			err = errors.Join(err, j.runtime.Send(n, &Finish{}))
		}
	}
	return false, err
}

// join makes a node that has started one of the job.
func (j *Job) join(n reconfig.Node, restores bool) error {
	j.progress[n] = &Progress{Taken: j.batch, Done: j.batch}
	if err := j.runtime.Send(n, &Join{j.batch, j.owners, j.settings, j.o.Keep != nil, restores}); err != nil {
		return err
	}
	j.setNodes(append(j.nodes, n))
	return nil
}

// takeAll takes the messages that are there.
func (j *Job) takeAll() error {
	j.taken, _ = j.box.Take(j.taken[:0])
	if j.o.Keep != nil && slices.ContainsFunc(j.taken, func(m Message) bool { _, is := m.(*Results); return is }) {
		if err := j.o.Keep.Sync(); err != nil { // what nobody could do again has no results
			return err
		}
	}
	for i, m := range j.taken {
		j.taken[i] = nil
		if err := j.take(m); err != nil {
			return err
		}
	}
	return nil
}

// loop is the life of the job.
func (j *Job) loop(ctx context.Context) error {
	var all []Message
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := j.takeAll(); err != nil {
			return err
		}
		all, _ = j.asks.Take(all[:0])
		for _, m := range all {
			j.control.ask(m.(*asked))
		}
		j.ended = j.ended || ctx.Err() != nil || j.intake.ended && !j.intake.full
		now := clock.NowNanos()
		j.look(now)
		j.show(now)
		if err := j.control.advance(now); err != nil {
			return err
		}
		over := j.ended && j.flight.len() == 0 && !j.control.busy() && j.done(j.batch)
		if j.saves(now, over) && over {
			return nil
		}
		wait := j.due(now)
		if wait == 0 {
			if err := j.route(ctx, now); err != nil {
				return err
			}
			continue
		}
		timer.Reset(wait)
		cancelled := ctx.Done()
		if j.ended {
			cancelled = nil // it is known, or does not matter
		}
		select {
		case <-j.box.Bell():
		case <-j.asks.Bell():
		case err := <-j.intake.done:
			if err := j.intake.fetched(ctx, err); err != nil {
				return err
			}
		case <-timer.C:
		case <-cancelled:
		}
	}
}

// due returns how long to wait until the next punctuation.
func (j *Job) due(now int64) time.Duration {
	const never = time.Second
	if j.flight.len() >= j.o.Outstanding || j.behind() >= batchesAhead {
		return never
	}
	switch {
	case j.change.due():
		return 0
	case j.control.holds() || j.ended && !j.control.busy():
		return never
	case !j.ended && (j.intake.full || j.o.Pace == nil && !j.intake.busy):
		return 0
	}
	return time.Duration(max(0, j.next-now))
}

// batchesAhead is how many batches a node may be behind.
const batchesAhead = 16

// behind returns how many batches have not been taken up by every node.
func (j *Job) behind() uint64 {
	least := j.batch
	for _, n := range j.nodes {
		least = min(least, j.progress[n].Taken)
	}
	return j.batch - least
}

// route sends a batch to the nodes.
func (j *Job) route(ctx context.Context, now int64) error {
	j.feed.Reset()
	if in := &j.intake; !j.ended && !j.control.holds() {
		if in.full {
			j.feed, in.feed, in.full = in.feed, j.feed, false
		}
		if n := j.arrived(now) - j.feed.Len(); !in.busy && !in.ended && (j.o.Pace == nil || n > 0 && now >= j.next) {
			in.fetch(ctx, j.recovery.skip, cmp.Or(max(n, 0), j.o.Batch), j.o.Pace != nil)
			j.recovery.skip = 0
			if j.feed.Len() == 0 && !j.change.due() { // the punctuation comes with them
				j.next = now + int64(j.o.Interval)
				return nil
			}
		}
	}
	from, to := now, now
	if n := j.feed.Len(); n > 0 && j.o.Pace != nil {
		from = j.last
		to = j.arrival(float64(j.seq-j.resumed)+float64(n), now)
		j.last = to
	}
	j.flight.add(j.seq, j.feed.Len(), from, to)
	c := j.change
	j.change = Change{}
	if c.Save > 0 {
		j.cut()
	}
	if err := errors.Join(j.log(&c), j.setLogic(&c, j.seq, false)); err != nil {
		return err
	}
	if err := j.router.Route(j.batch, j.feed, 0, j.feed.Len(), j.seq, c, j.runtime); err != nil {
		return err
	}
	j.owners = j.router.owners
	j.seq += uint64(j.feed.Len())
	j.batch++
	if now >= j.next { // and no sooner: changes have punctuations of their own
		j.next = max(j.next+int64(j.o.Interval), now)
	}
	return nil
}

// setLogic makes the settings of a change hold here, where plans see them, for the first time or once more.
func (j *Job) setLogic(c *Change, seq uint64, again bool) error {
	if c.Settings.IsZero() {
		return nil
	}
	for name, variant := range c.Settings.Logic {
		if err := j.app.SetLogic(name, variant); err != nil {
			return err
		}
	}
	j.settings = j.settings.Then(c.Settings)
	if !again {
		j.out.Changes = append(j.out.Changes, SettingsChange{seq, c.Settings})
	}
	return nil
}

// arrived returns how many events the next batch has.
func (j *Job) arrived(now int64) int {
	if j.o.Pace == nil {
		return j.o.Batch
	}
	due := int64(j.o.Pace(float64(now-j.start)/1e9)) - int64(j.seq-j.resumed)
	return int(min(max(due, 0), int64(j.o.Batch)))
}

// arrival returns when so many events had arrived, which is not before the last one that is known, nor after now: they
// may have waited for long until they were taken.
func (j *Job) arrival(events float64, now int64) int64 {
	early, late := j.last, now
	for late-early > 1000 {
		if mid := early + (late-early)/2; j.o.Pace(float64(mid-j.start)/1e9) >= events {
			late = mid
		} else {
			early = mid
		}
	}
	return late
}

// take takes a message of a node.
func (j *Job) take(m Message) error {
	switch m := m.(type) {
	case *Results:
		now := clock.NowNanos()
		for i := range m.Results {
			if err := j.completed(&m.Results[i], now); err != nil {
				return err
			}
		}
	case *Progress:
		if _, starts := j.starting[m.From]; starts { // it tells nothing before that but why it never will
			j.started(m.From, m.Err)
			return nil
		}
		if m.Err != nil && m.From == Control {
			return m.Err
		}
		if m.Err != nil {
			return &nodeError{m.From, m.Err}
		}
		*j.progress[m.From] = *m
		j.out.HeldMax = max(j.out.HeldMax, m.Held)
		if m.Saved > 0 {
			if err := j.saved(m); err != nil {
				return err
			}
		}
		return j.control.told(m)
	case *Started:
		j.started(m.From, m.Err)
	case *Final:
		j.finals++
		j.out.State.Sum(m.Hash)
	}
	return nil
}

func (j *Job) completed(r *Result, now int64) error {
	arrival, affected, ok := j.flight.done(r.Seq)
	if !ok && r.Seq < j.recovery.again {
		return nil
	}
	if !ok {
		return fmt.Errorf("event %d ended twice, or never began", r.Seq)
	}
	sums, committed := &j.sums, &j.out.Committed
	if p := j.recovery.pending; p != nil && len(p.waits) > 0 && r.Seq >= p.Seq {
		sums, committed = &p.later, &p.committed
	}
	if r.Committed {
		*committed++
	}
	j.buf = append(binary.LittleEndian.AppendUint64(j.buf[:0], r.Seq), r.Bytes...)
	sums.Add(j.buf)
	for _, h := range []*hdrhistogram.Histogram{j.out.Latency, j.sample} {
		_ = h.RecordValue(max(1000, now-arrival)) // hours are too long for it
	}
	if j.o.Completed != nil {
		j.o.Completed(Completion{r.Seq, r.Committed, arrival, now - arrival, affected, r.Bytes})
	}
	return nil
}

// look takes note of how often groups are used, once in a while.
func (j *Job) look(now int64) {
	const every, weight = int64(200 * time.Millisecond), 0.3
	if now < j.looked+every {
		return
	}
	seconds := float64(now-j.looked) / 1e9
	for g := range j.loads {
		j.loads[g].Writes += weight * (j.touched[g]/seconds - j.loads[g].Writes)
	}
	clear(j.touched)
	j.looked = now
	if j.looks++; j.looks%looksPerChoice == 0 {
		j.control.choose(seconds * looksPerChoice)
	}
}

func (j *Job) setNodes(nodes []reconfig.Node) {
	j.nodes = nodes
	j.router.SetNodes(slices.Clone(nodes))
}

// dismiss gives a node, which owns nothing, no work any more.
func (j *Job) dismiss(n reconfig.Node) {
	j.setNodes(slices.DeleteFunc(slices.Clone(j.nodes), func(o reconfig.Node) bool { return o == n }))
	j.leaving[n] = j.batch
}

// release has nodes end that have no work, and have done what they had.
func (j *Job) release() error {
	for n, batch := range j.leaving {
		if p := j.recovery.pending; j.progress[n].Done < batch || p != nil && p.waits[n] {
			continue
		}
		delete(j.leaving, n)
		if err := j.runtime.Send(n, &Finish{}); err != nil {
			return err
		}
	}
	return nil
}

// show shows the job to its controller, once in a while.
func (j *Job) show(now int64) {
	if j.o.Controller == nil || now < j.sampled+int64(j.o.Sampling) {
		return
	}
	s := reconfig.Sample{
		Elapsed: time.Duration(now - j.start), Nodes: slices.Clone(j.nodes), Owners: j.owners, Loads: slices.Clone(j.loads), Busy: j.control.busy(),
		Events: float64(j.sample.TotalCount()) / (float64(now-j.sampled) / 1e9), P99: time.Duration(j.sample.ValueAtPercentile(99)),
	}
	j.sample.Reset()
	j.sampled = now
	if r := j.o.Controller.Next(s); r != nil {
		j.control.ask(&asked{request: *r, reply: make(chan Report, 1)})
	}
}

// looksPerChoice is after how many looks it is chosen anew whether copies are worth what they cost.
const looksPerChoice = 10

// finish has all nodes tell their last word.
func (j *Job) finish() error {
	for _, n := range j.nodes {
		if err := j.runtime.Send(n, &Finish{}); err != nil {
			return err
		}
	}
	j.nodes = nil
	for j.finals < j.up {
		<-j.box.Bell()
		if err := j.takeAll(); err != nil {
			return err
		}
	}
	return nil
}
