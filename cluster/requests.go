package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/reconfig"
)

// requests are what a job was asked for: one is under way, the others wait in their order.
type requests struct {
	j       *Job
	all     []*request
	known   map[string]*request // by name
	current *request
	queue   []*request
	replica map[reconfig.Group]reconfig.Node // who has, or is about to have, a copy
	part    float64                          // of the groups that should have one
	chooses bool                             // nobody said which part
	stale   bool                             // replicas are not as they should be
	copying map[reconfig.Group]bool          // of which a copy was ordered that is not whole yet
	looks   int                              // at what copies cost
	seen    int64                            // bytes that had come to nodes when it was chosen last
	now     int64
}

// request is one under way.
type request struct {
	Report
	began     int64
	surveying int64                   // since when
	unknown   map[reconfig.Group]bool // not surveyed yet
	absent    map[reconfig.Group]bool // not arrived yet
	chunks    [][]reconfig.Move       // to come
	ordered   int                     // of these so many are ordered to be copied
	last      uint64                  // the batch of the last chunk
	set       uint64                  // before which its settings were given to the nodes
	paused    []int64
	before    int64 // bytes that had come to all nodes when it began
	abort     bool
	tickets   []chan<- Report
}

// asked is a request on its way to the job.
type asked struct {
	request reconfig.Request
	abort   string
	status  chan<- []Report
	reply   chan<- Report
}

func (*asked) message() {}

func newRequests(j *Job) requests {
	return requests{j: j, known: map[string]*request{}, replica: map[reconfig.Group]reconfig.Node{}, copying: map[reconfig.Group]bool{}, part: max(j.o.Replicas, 0), chooses: j.o.Replicas == 0, stale: j.o.Replicas > 0}
}

// errOver tells that there is no job any more.
var errOver = errors.New("the job is over")

// Ask has the job change, and returns a channel that gets the report when that is done, or cannot be. Requests
// are done one after the other. Any goroutine.
func (j *Job) Ask(r reconfig.Request) <-chan Report {
	reply := make(chan Report, 1)
	if !j.asks.put(&asked{request: r, reply: reply}) {
		reply <- Report{Request: r, State: Refused, Error: errOver.Error()}
	}
	return reply
}

// Abort ends the request of a name, or the one under way for "", as soon as what has left is there. What waits is
// taken out of the queue.
func (j *Job) Abort(name string) {
	j.asks.put(&asked{abort: name, request: reconfig.Request{Name: name}})
}

// Status returns reports of all requests so far, the oldest first, nil when the job is over. Any goroutine.
func (j *Job) Status() []Report {
	c := make(chan []Report, 1)
	if !j.asks.put(&asked{status: c}) {
		return nil
	}
	return <-c
}

// ask takes what was asked.
func (q *requests) ask(a *asked) {
	switch {
	case a.status != nil:
		a.status <- q.reports()
		return
	case a.reply == nil:
		q.abort(a.abort)
		return
	}
	r := a.request
	if r.Name == "" {
		r.Name = fmt.Sprint(len(q.all) + 1)
	}
	if old := q.known[r.Name]; old != nil { // it was asked already
		old.answer(a.reply)
		return
	}
	x := &request{Report: Report{Request: r, State: Queued, Migration: r.Migration}}
	x.answer(a.reply)
	q.all, q.known[r.Name] = append(q.all, x), x
	if _, err := q.prepare(&r); err != nil {
		q.end(x, Refused, err.Error())
		return
	}
	q.queue = append(q.queue, x)
}

func (q *requests) abort(name string) {
	for _, x := range append(slices.Clone(q.queue), q.current) {
		if x == nil || name != "" && x.Request.Name != name {
			continue
		}
		if x.abort = true; x != q.current {
			q.queue = slices.DeleteFunc(q.queue, func(o *request) bool { return o == x })
			q.end(x, Aborted, "")
		}
	}
}

// answer has a report sent when the request has ended.
func (x *request) answer(to chan<- Report) {
	if x.State.ended() {
		to <- x.Report
		return
	}
	x.tickets = append(x.tickets, to)
}

// end ends a request.
func (q *requests) end(x *request, s State, why string) {
	x.State, x.Error = s, why
	for _, t := range x.tickets {
		t <- x.Report
	}
	x.tickets = nil
	q.changed(x)
}

func (q *requests) changed(x *request) {
	if q.j.o.Changed != nil {
		q.j.o.Changed(x.Report)
	}
}

func (q *requests) reports() []Report {
	out := make([]Report, len(q.all))
	for i, x := range q.all {
		out[i] = x.Report
	}
	return out
}

// close refuses what is left.
func (q *requests) close() {
	for _, m := range q.j.asks.Close() {
		if a, ok := m.(*asked); ok {
			q.ask(a)
		}
	}
	for _, x := range q.all {
		if !x.State.ended() {
			q.end(x, Refused, errOver.Error())
		}
	}
}

func (q *requests) busy() bool {
	return q.current != nil || len(q.queue) > 0 || q.j.change.due() || len(q.j.leaving) > 0
}

// holds reports whether no events are taken.
func (q *requests) holds() bool {
	x := q.current
	return x != nil && x.Migration.Stop && x.State == Moving
}

// advance does what can be done for now.
func (q *requests) advance(now int64) error {
	q.now = now
	if err := q.j.release(); err != nil {
		return err
	}
	if len(q.j.recovery.restoring) > 0 {
		return nil
	}
	if q.current == nil && len(q.queue) > 0 {
		q.current, q.queue = q.queue[0], q.queue[1:]
		if err := q.begin(q.current); err != nil {
			return err
		}
	}
	x := q.current
	if x == nil {
		q.replicate()
		return nil
	}
	if x.State == Starting {
		if err := q.started(x); err != nil || q.current == nil {
			return err
		}
	}
	if x.State == Surveying && (len(x.unknown) == 0 || x.abort) {
		q.chunk(x)
	}
	if x.State == Moving {
		q.move(x)
	}
	return nil
}

// prepare finds out what a request comes to.
func (q *requests) prepare(r *reconfig.Request) (reconfig.Diff, error) {
	j := q.j
	d, err := r.Prepare(j.owners, j.nodes, j.loads, j.free)
	for name, variant := range r.Logic {
		err = errors.Join(err, j.app.HasLogic(name, variant))
	}
	if r.Workers > engine.WorkersMax {
		err = errors.Join(err, fmt.Errorf("workers %d: 1 to %d are allowed", r.Workers, engine.WorkersMax))
	}
	if r.Strategy != "" {
		err = errors.Join(err, engine.HasStrategy(r.Strategy))
	}
	d.Settings = r.Than(j.settings)
	return d, err
}

// begin prepares a request.
func (q *requests) begin(x *request) error {
	j := q.j
	d, err := q.prepare(&x.Request)
	if err != nil { // what came before it made it impossible
		q.current = nil
		q.end(x, Refused, err.Error())
		return nil
	}
	if x.Request.Nodes > 0 && !x.Request.Rebalance {
		d.Moves = reconfig.Prefer(d.Moves, q.replica)
	}
	x.Diff, x.began, x.before = d, q.now, j.received()
	if x.Request.DryRun {
		_ = q.foretell(x)
		q.current = nil
		q.end(x, Done, "")
		return nil
	}
	for _, n := range d.Starts {
		j.startNode(n)
	}
	x.State = Starting
	q.changed(x)
	return nil
}

// started goes on when the nodes that are to join are there.
func (q *requests) started(x *request) error {
	j := q.j
	waits, err := j.startedAll(x.Diff.Starts)
	if err != nil {
		q.current = nil
		q.end(x, Refused, err.Error())
		return nil
	}
	if waits {
		return nil
	}
	for _, n := range x.Diff.Starts {
		if err := j.join(n, false); err != nil {
			return err
		}
	}
	x.StartMs = q.since(x.began)
	if r := x.Request.Replicas; r != 0 {
		q.part, q.stale, q.chooses = max(r, 0), true, false
	}
	clear(j.flight.affected)
	x.unknown, x.absent = map[reconfig.Group]bool{}, map[reconfig.Group]bool{}
	for _, m := range x.Diff.Moves {
		j.flight.affected[m.Group] = true
		to, has := q.replica[m.Group]
		if has && to == m.To {
			continue
		}
		if has {
			q.release(m.Group, m.From, to)
		}
		x.unknown[m.Group] = true
		q.order(Survey, m.Group, m.From, m.To)
	}
	x.State, x.surveying = Surveying, q.now
	q.changed(x)
	return nil
}

func (q *requests) order(kind OrderKind, g reconfig.Group, from, to reconfig.Node) {
	q.j.change.Orders = append(q.j.change.Orders, Order{kind, g, from, to})
}

func (q *requests) release(g reconfig.Group, from, to reconfig.Node) {
	q.order(Release, g, from, to)
	delete(q.replica, g)
	delete(q.copying, g)
}

// copy has a group copied.
func (q *requests) copy(g reconfig.Group, from, to reconfig.Node) {
	q.order(Copy, g, from, to)
	q.replica[g], q.copying[g] = to, true
}

// foretell fills in what a request would take, and returns its chunks.
func (q *requests) foretell(x *request) (chunks [][]reconfig.Move) {
	loads := slices.Clone(q.j.loads)
	for _, m := range x.Diff.Moves {
		to, has := q.replica[m.Group]
		loads[m.Group].Copied = has && to == m.To && !q.copying[m.Group]
	}
	x.Migration = x.Migration.Adapted(x.Diff.Moves, loads, q.j.o.LinkRate, q.j.o.Pause)
	chunks = reconfig.Chunks(x.Diff.Moves, loads, x.Migration, uint64(len(q.all)))
	x.Chunks = len(chunks)
	x.BytesToMove = bytesOf(x.Diff.Moves, q.j.loads)
	most := int64(0)
	for _, c := range chunks {
		most = max(most, bytesOf(c, q.j.loads))
	}
	x.PredictedMs = float64(most)/q.j.o.LinkRate*1e3 + float64(q.j.o.Interval)/1e6
	if x.Migration.Ahead {
		x.PredictedMs = float64(q.j.o.Interval) / 1e6
	}
	return chunks
}

func bytesOf(moves []reconfig.Move, loads []reconfig.Load) (sum int64) {
	for _, m := range moves {
		sum += loads[m.Group].Bytes
	}
	return sum
}

// chunk divides the moves, now that it is known how large groups are.
func (q *requests) chunk(x *request) {
	x.SurveyMs = q.since(x.surveying)
	x.chunks = q.foretell(x)
	x.PredictedMs = 0
	x.State = Moving
	q.changed(x)
}

// copiesAhead is how many chunks are copied before the one that moves is done.
const copiesAhead = 4

// move has chunks copied and moved, as far as that is possible now.
func (q *requests) move(x *request) {
	j := q.j
	if x.abort && len(x.absent) == 0 {
		q.giveUp(x)
		return
	}
	for x.Migration.Ahead && !x.abort && x.ordered < min(len(x.chunks), copiesAhead) {
		for _, m := range x.chunks[x.ordered] {
			if to, has := q.replica[m.Group]; !has || to != m.To {
				q.copy(m.Group, m.From, m.To)
			}
		}
		x.ordered++
	}
	if len(x.absent) > 0 || len(j.change.Moves) > 0 {
		return
	}
	if len(x.chunks) == 0 {
		q.last(x)
		return
	}
	next := x.chunks[0]
	if x.ChunksDone > 0 && j.batch < x.last+uint64(x.Migration.Gap) || x.Migration.Stop && !q.j.quiet() ||
		slices.ContainsFunc(next, func(m reconfig.Move) bool { return x.Migration.Ahead && q.copying[m.Group] }) {
		return
	}
	for _, m := range next {
		x.absent[m.Group] = true
		delete(q.replica, m.Group)
		delete(q.copying, m.Group)
	}
	j.change.Moves = next
	q.give(x)
	x.chunks, x.last = x.chunks[1:], j.batch
	x.ordered = max(0, x.ordered-1)
}

// last ends a request of which no group is left to move, when all nodes have its settings.
func (q *requests) last(x *request) {
	switch {
	case x.set == 0 && !x.Diff.Settings.IsZero():
		q.give(x)
	case x.set <= q.j.batch-q.j.behind():
		q.done(x)
	}
}

// give has the nodes get the settings of a request with the next batch, unless they have them. Logic changes where nothing
// of the batches before it is under way, so that no transaction sees the one here and the other there.
func (q *requests) give(x *request) {
	if c := &q.j.change; x.set == 0 && !x.Diff.Settings.IsZero() {
		c.Settings, x.set = x.Diff.Settings, q.j.batch+1
		c.Settle = c.Settle || len(c.Settings.Logic) > 0
	}
}

// interrupted makes the request under way begin once more, with what is left of it: nodes died, and copies with them.
func (q *requests) interrupted() {
	clear(q.replica)
	clear(q.copying)
	q.stale = q.part > 0
	x := q.current
	if x == nil {
		return
	}
	q.current = nil
	q.queue = append([]*request{x}, q.queue...)
	x.State, x.set, x.chunks, x.ordered, x.ChunksDone = Queued, 0, nil, 0, 0
	x.Restarts++
	q.changed(x)
}

// giveUp ends a request with what is left of it undone.
func (q *requests) giveUp(x *request) {
	for _, c := range x.chunks {
		for _, m := range c {
			q.release(m.Group, m.From, m.To)
		}
	}
	for _, n := range x.Diff.Starts { // that got nothing
		if q.j.owners.Count(n) == 0 {
			q.j.dismiss(n)
		}
	}
	q.over(x, Aborted)
}

func (q *requests) done(x *request) {
	for _, n := range x.Diff.Stops {
		q.j.dismiss(n)
	}
	q.over(x, Done)
}

func (q *requests) over(x *request, s State) {
	x.CompletionMs = q.since(x.began)
	x.BytesMoved = q.j.received() - x.before
	for _, p := range x.paused {
		x.PauseMaxMs = max(x.PauseMaxMs, float64(p)/1e6)
		x.PauseMeanMs += float64(p) / 1e6 / float64(len(x.paused))
	}
	q.current, q.stale = nil, q.part > 0 || len(q.replica) > 0
	q.end(x, s, "")
}

func (q *requests) since(nanos int64) float64 { return float64(clock.NowNanos()-nanos) / 1e6 }

// told takes a node's news.
func (q *requests) told(p *Progress) error {
	for _, s := range p.Sizes {
		q.j.loads[s.Group].Bytes, q.j.loads[s.Group].Rows = s.Bytes, s.Rows
	}
	for _, g := range p.Copied {
		delete(q.copying, g)
	}
	for _, a := range p.Arrived {
		delete(q.j.recovery.restoring, a.Group)
	}
	x := q.current
	if x == nil {
		return nil
	}
	for _, s := range p.Sizes {
		delete(x.unknown, s.Group)
	}
	for _, a := range p.Arrived {
		if !x.absent[a.Group] {
			return fmt.Errorf("key group %d came to node %d, and nobody sent it there", a.Group, p.From)
		}
		delete(x.absent, a.Group)
		x.GroupsMoved++
		x.paused = append(x.paused, a.Nanos)
	}
	if len(p.Arrived) > 0 && len(x.absent) == 0 {
		x.ChunksDone++
		q.changed(x)
	}
	return nil
}

const (
	// replicateLong is how long it should take to move all state, at least, so that copies are kept: seconds.
	replicateLong = 0.5
	// replicatePart is of how many groups copies are kept, unless that costs too much.
	replicatePart = 0.75
	// replicateShare is what part of a link keeping them new may take.
	replicateShare = 0.3
)

// choose decides, where nobody did, whether copies are kept: most groups have one where moving all of them would
// take long, and fewer and fewer of them where keeping them new takes too much of the links.
func (q *requests) choose(seconds float64) {
	now := q.j.received()
	came := float64(now-q.seen) / seconds / float64(len(q.j.nodes))
	q.seen = now
	if !q.chooses || q.current != nil || len(q.copying) > 0 {
		return
	}
	total := int64(0)
	for _, l := range q.j.loads {
		total += l.Bytes
	}
	part := q.part
	switch {
	case len(q.j.nodes) < 2 || float64(total) < replicateLong*q.j.o.LinkRate:
		part, q.looks = 0, -1 // that may change with the nodes
	case part == 0 && q.looks == 0:
		part = replicatePart
	case part > 0 && q.looks > 1 && came > replicateShare*q.j.o.LinkRate:
		part /= 2
	}
	if part < 0.05 {
		part = 0
	}
	q.looks++
	if part != q.part {
		q.part, q.stale = part, true
	}
}

// replicate has the groups copied that should be, and no others.
func (q *requests) replicate() {
	if !q.stale {
		return
	}
	q.stale = false
	j := q.j
	mean := 0.0
	for _, l := range j.loads {
		mean += l.Writes / float64(len(j.loads))
	}
	seen := map[reconfig.Node]float64{}
	for g := range j.owners.Groups() {
		group, from := reconfig.Group(g), j.owners.Of(reconfig.Group(g))
		next := j.nodes[(slices.Index(j.nodes, from)+1)%len(j.nodes)]
		before := seen[from]
		seen[from] += q.part
		wants := int(seen[from]) > int(before) && next != from && j.loads[g].Writes <= 4*mean // what changes all the time is not worth it
		to, has := q.replica[group]
		if has && (!wants || to != next) {
			q.release(group, from, to)
			has = false
		}
		if wants && !has {
			q.copy(group, from, next)
		}
	}
}

// quiet reports whether nothing is under way.
func (j *Job) quiet() bool { return j.flight.len() == 0 && j.behind() == 0 }

// received returns the bytes of groups that all nodes have got.
func (j *Job) received() (sum int64) {
	for _, p := range j.progress {
		sum += p.Moved
	}
	return sum
}
