package operators

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// Exec is a plan that is executed. Its methods are called by one goroutine, but for the
// tasks that [Exec.Step] hands out.
type Exec struct {
	g           *plan.Graph
	env         Env
	stages      []*stage
	mark        int64 // the watermark that all heard of
	counters    map[plan.ID]*Counters
	share       func(n int, do func(i int) error) error
	scratch     int64  // bytes of memory of stores that are empty between two batches
	windowed    int    // vertices that keep windows
	windowLimit int64  // bytes of memory of all stores together
	dir         string // for files, "" before there is one
	stores      map[plan.ID][]window.Store
	kept        []window.Store
	arbiter     arbiter
	dues        []func(watermark int64, ends []int64) []int64 // add the ends of windows that fire up to a watermark
	ends, marks []int64                                       // scratch
	lasting     []lasting
	closing     []func() error
	failed      []error // why it cannot be executed
}

// stage is vertices that are fused.
type stage struct {
	e        *Exec
	vertices []plan.Vertex
	source   source // of a stage that begins with one
	done     bool
	idle     bool
	mark     int64 // watermark of the source
	batch    int
	tasks    []*task
	inlets   []any // of the source, by task
	order    []int // of tasks, in which they run
	sizes    []int // items for each
	mails    []exchange
}

// Open makes what a plan says ready to be executed. Share runs do for 0 to n-1, on as many
// goroutines as it likes, and returns when all have ended, with one of their errors.
func Open(g *plan.Graph, env Env, share func(n int, do func(i int) error) error) (*Exec, error) {
	env.setDefaults()
	for _, v := range g.Vertices() {
		if _, ok := v.Op.(operator); !ok {
			return nil, fmt.Errorf("vertex %s has no operator of this package", v.ID)
		}
	}
	e := &Exec{g: g, env: env, mark: math.MinInt64, counters: map[plan.ID]*Counters{}, share: share, stores: map[plan.ID][]window.Store{}}
	if err := e.makeDir(); err != nil {
		return nil, err
	}
	of := map[plan.ID]*stage{}
	for _, v := range g.Vertices() {
		e.counters[v.ID] = &Counters{}
		e.lastCounters(v.ID, e.counters[v.ID])
		var s *stage
		if in := g.In(v.ID); len(in) == 1 && plan.Fuse.Of(g, in[0].ID) {
			s = of[in[0].From]
		} else {
			s = &stage{e: e}
			e.stages = append(e.stages, s)
		}
		s.vertices = append(s.vertices, v)
		of[v.ID] = s
	}
	mails := map[plan.ID]exchange{}
	for _, edge := range g.Edges() {
		if of[edge.From] != of[edge.To] {
			m, err := e.mail(edge)
			if err != nil {
				return nil, errors.Join(err, e.Close())
			}
			mails[edge.ID] = m
			of[edge.To].mails = append(of[edge.To].mails, m)
		}
	}
	for _, s := range e.stages {
		s.build(mails)
	}
	if len(e.failed) > 0 {
		return nil, errors.Join(e.failed[0], e.Close())
	}
	if err := e.follow(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// mail makes the exchange of an edge between two stages.
func (e *Exec) mail(edge plan.Edge) (exchange, error) {
	from, _ := e.g.Vertex(edge.From)
	to, _ := e.g.Vertex(edge.To)
	how := mailing{
		from: plan.Parallelism.Of(e.g, from.ID), to: plan.Parallelism.Of(e.g, to.ID),
		all: edge.Pattern == plan.Broadcast, byTime: e.byTime(from.ID),
	}
	if to.Op.(operator).byTime() && !allowsLate(to.Op) {
		how.inTime = e.counters[to.ID]
	}
	how.bits = uint(bits.Len(uint(how.to)) - 1)
	if edge.Pattern == plan.Shuffle {
		if how.hash = to.Op.(operator).hashOf(edge.Port); how.hash == nil && how.to > 1 {
			return nil, fmt.Errorf("edge %s: items have no key by which they go to one of %d partitions", edge.ID, how.to)
		}
	}
	m := from.Op.(operator).exchange(how)
	if how.byTime {
		m.lasts(e, edge)
	}
	return m, nil
}

// allowsLate reports whether an operator knows what to do with late items.
func allowsLate(op any) bool {
	late, ok := op.(interface{ allowsLate() bool })
	return ok && late.allowsLate()
}

// byTime reports whether a vertex has a state of its own for each partition, or hears from one that
// has: then its output goes on in the order of times.
func (e *Exec) byTime(id plan.ID) bool {
	v, _ := e.g.Vertex(id)
	if v.Op.(operator).byTime() {
		return true
	}
	for _, edge := range e.g.In(id) {
		if e.byTime(edge.From) {
			return true
		}
	}
	return false
}

func (s *stage) build(mails map[plan.ID]exchange) {
	first := s.vertices[0]
	if v, ok := first.Op.(interface{ open(e *Exec) source }); ok {
		s.source, s.mark = v.open(s.e), math.MinInt64
		s.batch = plan.BatchSize.Of(s.e.g, first.ID)
		s.lasts()
	}
	n := plan.Parallelism.Of(s.e.g, first.ID)
	for p := range n {
		t := &task{partition: p, partitions: n, stage: s}
		s.tasks = append(s.tasks, t)
		t.build(mails)
		s.order = append(s.order, p)
	}
	s.sizes = make([]int, n)
}

// lasts makes it last where a source stands.
func (s *stage) lasts() {
	e := s.e
	e.lasting = append(e.lasting, lasting{string(s.vertices[0].ID) + "/position", func(w *image.Writer) error {
		next, latest := s.source.position()
		w.Int(next)
		w.Int(latest)
		w.Int(s.mark)
		w.Bool(s.done)
		w.Int(e.mark)
		w.Item()
		return nil
	}, func(r *image.Reader) error {
		r.Want()
		next, latest := r.Int(), r.Int()
		s.mark, s.done, e.mark = r.Int(), r.Bool(), r.Int()
		if r.Err() != nil || s.done {
			return r.Err()
		}
		return s.source.seek(next, latest)
	}})
}

// build makes the operators of a task, the last ones first.
func (t *task) build(mails map[plan.ID]exchange) {
	g := t.stage.e.g
	inlets := map[plan.ID][]any{}
	for _, v := range slices.Backward(t.stage.vertices) {
		op := v.Op.(operator)
		var outs []any
		for _, edge := range g.Out(v.ID) {
			if m := mails[edge.ID]; m != nil {
				outs = append(outs, m.outlet(t.partition))
			} else {
				outs = append(outs, inlets[edge.To][edge.Port])
			}
		}
		var out any
		switch len(outs) {
		case 0:
		case 1:
			out = outs[0]
		default:
			out = op.tee(outs)
		}
		t.vertex = v.ID
		ins := op.build(t, out)
		inlets[v.ID] = ins
		for _, edge := range g.In(v.ID) {
			if m := mails[edge.ID]; m != nil {
				t.heads = append(t.heads, head{m, ins[edge.Port]})
			}
		}
	}
	if t.stage.source != nil {
		t.stage.inlets = append(t.stage.inlets, inlets[t.stage.vertices[0].ID][0])
	}
}

// Read reads the next batch of each source, and returns how many items it has. At the end
// there is none.
func (e *Exec) Read() (items int, err error) {
	for _, s := range e.stages {
		if s.source == nil || s.done {
			continue
		}
		if err := called(s.vertices[:1], func() error {
			n, err := s.source.begin(s.batch)
			items += n
			return err
		}); err != nil {
			return 0, err
		}
		if err := e.share(len(s.tasks), func(i int) error {
			return called(s.vertices[:1], func() error { s.source.fill(i, len(s.tasks)); return nil })
		}); err != nil {
			return 0, err
		}
	}
	return items, nil
}

// Step takes what was read through all stages. It reports whether there is more to read.
func (e *Exec) Step() (more bool, err error) {
	watermark, more, err := e.settle()
	if err != nil {
		return false, err
	}
	for i, mark := range e.passes(watermark) {
		if err := e.pass(mark, i == 0); err != nil {
			return false, err
		}
	}
	return more, e.arbiter.divide()
}

// pass takes what waits through all stages, up to a watermark; with the first one come the items of sources.
func (e *Exec) pass(watermark int64, first bool) error {
	for _, s := range e.stages {
		order := s.largestFirst()
		if err := e.share(len(s.tasks), func(i int) error { return s.run(order[i], watermark, first) }); err != nil {
			return err
		}
		for _, m := range s.mails {
			m.clear()
		}
	}
	return nil
}

// passesMax is in how many passes a batch goes through the stages, at most.
const passesMax = 16

// passes returns the watermarks with which a batch goes through the stages, the last one at the end. One is enough,
// but if time leaps, as at the end of the input, what all windows put out at once would be in memory.
func (e *Exec) passes(watermark int64) []int64 {
	ends := e.ends[:0]
	for _, due := range e.dues {
		ends = due(watermark, ends)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	e.ends = ends
	each := (len(ends) + passesMax - 1) / passesMax
	e.marks = e.marks[:0]
	for i := each - 1; i >= 0 && i < len(ends)-1; i += each {
		e.marks = append(e.marks, ends[i])
	}
	e.marks = append(e.marks, watermark)
	return e.marks
}

// largestFirst lists the tasks, first those that most items are for: workers take one after the other, and one with
// a hot key that began last would have all others wait.
func (s *stage) largestFirst() []int {
	for i := range s.tasks {
		s.sizes[i] = 0
		for _, m := range s.mails {
			s.sizes[i] += m.size(i)
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.sizes[b], s.sizes[a]) })
	return s.order
}

// settle finds what of the batch goes on, and the watermark: the least of those of all sources that
// are not idle. It does not go back.
func (e *Exec) settle() (watermark int64, more bool, err error) {
	watermark, heard, known := int64(math.MaxInt64), false, int64(math.MaxInt64)
	for _, s := range e.stages {
		if s.source == nil {
			continue
		}
		if s.done {
			if _, err := s.source.begin(0); err != nil {
				return 0, false, err
			}
		} else {
			mark := int64(0)
			err := called(s.vertices[:1], func() error {
				mark, s.idle, s.done = s.source.settle(e.counters[s.vertices[0].ID], e.mark)
				return nil
			})
			if err != nil {
				return 0, false, err
			}
			if !s.idle {
				s.mark = mark
			}
			more = more || !s.done
		}
		known = min(known, s.mark)
		if !s.idle {
			watermark, heard = min(watermark, s.mark), heard || !s.done
		}
	}
	if !heard && more { // all that may have something are idle
		watermark = known
	}
	e.mark = max(e.mark, watermark)
	return e.mark, more, nil
}

// run takes a batch through one task.
func (s *stage) run(i int, watermark int64, first bool) error {
	t := s.tasks[i]
	return called(s.vertices, func() error {
		if s.source != nil && first {
			if err := s.source.push(i, len(s.tasks), s.inlets[i]); err != nil {
				return err
			}
		}
		for _, h := range t.heads {
			if err := h.from.deliver(i, h.to, watermark); err != nil {
				return err
			}
		}
		for _, step := range slices.Backward(t.steps) {
			if err := step(watermark); err != nil {
				return err
			}
		}
		return nil
	})
}

// Counters returns what each vertex did.
func (e *Exec) Counters() map[plan.ID]*Counters { return e.counters }

// Done reports whether all sources are read to their end and all is done.
func (e *Exec) Done() bool {
	for _, s := range e.stages {
		if s.source != nil && !s.done {
			return false
		}
	}
	return true
}

// Adapt goes on with another plan, between two batches, of which only the sizes of batches and strategies differ.
func (e *Exec) Adapt(g *plan.Graph) error {
	e.g = g
	for _, s := range e.stages {
		if s.source != nil {
			s.batch = plan.BatchSize.Of(g, s.vertices[0].ID)
		}
	}
	return e.follow()
}

// follow tells those who execute transactions what the plan says of it.
func (e *Exec) follow() error {
	for _, v := range e.g.Vertices() {
		if op, ok := v.Op.(interface {
			follow(g *plan.Graph, id plan.ID) error
		}); ok {
			if err := op.follow(e.g, v.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Plan returns the plan that is executed.
func (e *Exec) Plan() *plan.Graph { return e.g }

// Close gives back what the job has on disk.
func (e *Exec) Close() error {
	var errs []error
	for _, end := range e.closing {
		errs = append(errs, end())
	}
	e.closing = nil
	for _, stores := range e.stores {
		for _, s := range stores {
			errs = append(errs, s.Close())
		}
	}
	e.stores = nil
	if e.dir != "" && e.env.Dir == "" {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}
