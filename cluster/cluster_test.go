package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// outcome is what a run came to: of each event whether it committed and its result, and the state.
type outcome struct {
	results []cluster.Result
	state   storage.Hash
}

const loaded = 6

// serially is the specification: one node, in order, beside the model.
func serially(t *testing.T, events []metamorphic.Event) (o outcome) {
	t.Helper()
	l := metamorphic.NewUnwatched(loaded)
	s, err := engine.NewSession(l.App, engine.Options{Workers: 1, Strategy: "serial", Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		l.Events.Push(s.Feed(), e)
		err := s.RunEach(func(_ int, v txn.Verdict, result []byte) {
			o.results = append(o.results, cluster.Result{Seq: uint64(i), Committed: v == txn.OK, Bytes: slices.Clone(result)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.state = storage.StateHash(l.App)
	if m, err := s.Close(); err != nil || !m.Verified {
		t.Fatal(err)
	}
	return o
}

// network delivers messages in an order that is drawn, but for those between the same two.
type network struct {
	r      *rng.RNG
	links  [][2]reconfig.Node // that have messages
	queues map[[2]reconfig.Node][]cluster.Message
	slow   func(from, to reconfig.Node, m cluster.Message) bool // what others go before, as long as there are some
}

// wire is a sender's end.
type wire struct {
	*network
	from reconfig.Node
}

func (w wire) Send(to reconfig.Node, m cluster.Message) error {
	link := [2]reconfig.Node{w.from, to}
	switch m.(type) {
	case *cluster.Image, *cluster.CopyRows: // large ones go another way
		link[0] -= 1000
	}
	if len(w.queues[link]) == 0 {
		w.links = append(w.links, link)
	}
	w.queues[link] = append(w.queues[link], m)
	return nil
}

// next takes a message off a link.
func (n *network) next() (to reconfig.Node, m cluster.Message) {
	i := n.r.IntN(len(n.links))
	if n.slow != nil {
		for tries := 0; tries < 20 && n.slow(n.links[i][0], n.links[i][1], n.queues[n.links[i]][0]); tries++ {
			i = n.r.IntN(len(n.links))
		}
	}
	link := n.links[i]
	m = n.queues[link][0]
	if n.queues[link] = n.queues[link][1:]; len(n.queues[link]) == 0 {
		n.links = slices.Delete(n.links, i, i+1)
	}
	return link[1], m
}

// job is nodes and routers on a network.
type job struct {
	t       *testing.T
	r       *rng.RNG
	net     *network
	nodes   []*cluster.Node
	ids     []reconfig.Node
	source  *metamorphic.List
	feed    *txn.Feed
	routers []*cluster.Router
	owners  *reconfig.Owners
	flying  map[reconfig.Group]bool
	got     map[uint64]cluster.Result
	held    int // the most actions that waited
	moved   int
	copied  int
}

type shape struct {
	nodes, routers, groups int
	options                engine.Options
}

func newJob(t *testing.T, r *rng.RNG, s shape) *job {
	j := &job{t: t, r: r, net: &network{r: r, queues: map[[2]reconfig.Node][]cluster.Message{}}, flying: map[reconfig.Group]bool{}, got: map[uint64]cluster.Result{}}
	for i := range s.nodes {
		j.ids = append(j.ids, reconfig.Node(i))
	}
	var err error
	if j.owners, err = reconfig.Even(s.groups, j.ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range j.ids {
		n, err := cluster.NewNode(metamorphic.NewUnwatched(loaded).App, cluster.Options{Node: id, Routers: s.routers, Owners: j.owners, Refresh: 1 + uint64(r.IntN(4)), Engine: s.options}, wire{j.net, id})
		if err != nil {
			t.Fatal(err)
		}
		j.nodes = append(j.nodes, n)
	}
	j.source = metamorphic.NewUnwatched(0)
	j.feed = j.source.App.NewFeed()
	for i := range s.routers {
		j.routers = append(j.routers, cluster.NewRouter(i, j.source.App, j.owners, j.ids))
	}
	return j
}

// route has all routers route their part of a batch.
func (j *job) route(batch uint64, events []metamorphic.Event, first uint64, c cluster.Change) {
	j.t.Helper()
	j.feed.Reset()
	for _, e := range events {
		j.source.Events.Push(j.feed, e)
	}
	for i, r := range j.routers {
		lo, hi := i*len(events)/len(j.routers), (i+1)*len(events)/len(j.routers)
		from := reconfig.Node(-10 - i)
		if err := r.Route(batch, j.feed, lo, hi, first+uint64(lo), c, wire{j.net, from}); err != nil {
			j.t.Fatal(err)
		}
	}
}

// moves draws groups that are not on their way, and where they go.
func (j *job) moves(most int) (moves []reconfig.Move) {
	taken := map[reconfig.Group]bool{}
	for range j.r.IntN(most + 1) {
		g := reconfig.Group(j.r.IntN(j.owners.Groups()))
		to := j.ids[j.r.IntN(len(j.ids))]
		if from := j.owners.Of(g); from != to && !j.flying[g] && !taken[g] {
			taken[g] = true
			moves = append(moves, reconfig.Move{Group: g, From: from, To: to})
		}
	}
	if len(moves) == 0 {
		return nil
	}
	for _, m := range moves {
		j.flying[m.Group] = true
	}
	j.moved += len(moves)
	next, err := j.owners.Moved(moves)
	if err != nil {
		j.t.Fatal(err)
	}
	j.owners = next
	return moves
}

// orders draws some about groups that stay where they are.
func (j *job) orders(most int) (orders []cluster.Order) {
	for range j.r.IntN(most + 1) {
		g := reconfig.Group(j.r.IntN(j.owners.Groups()))
		o := cluster.Order{Kind: cluster.OrderKind(j.r.IntN(3)), Group: g, From: j.owners.Of(g), To: j.ids[j.r.IntN(len(j.ids))]}
		if !j.flying[g] && o.To != o.From {
			orders = append(orders, o)
		}
	}
	return orders
}

// step delivers one message, or has a node do what it can do at any time.
func (j *job) step() {
	j.t.Helper()
	if j.r.IntN(4) == 0 {
		j.work(j.r.IntN(len(j.nodes)))
		return
	}
	to, m := j.net.next()
	if to != cluster.Control {
		if err := j.nodes[to].Handle(m); err != nil {
			j.t.Fatal(err)
		}
		return
	}
	switch m := m.(type) {
	case *cluster.Results:
		for _, r := range m.Results {
			if _, twice := j.got[r.Seq]; twice {
				j.t.Fatalf("two results of event %d", r.Seq)
			}
			j.got[r.Seq] = r
		}
	case *cluster.Progress:
		if m.Err != nil {
			j.t.Fatal(m.Err)
		}
		j.held = max(j.held, m.Held)
		j.copied += len(m.Copied)
		for _, a := range m.Arrived {
			delete(j.flying, a.Group)
		}
	}
}

func (j *job) work(node int) (more bool) {
	j.t.Helper()
	more, err := j.nodes[node].Work()
	if err != nil {
		j.t.Fatal(err)
	}
	return more
}

// rest delivers all that is under way, until no node has anything to do.
func (j *job) rest() {
	j.t.Helper()
	for {
		for len(j.net.links) > 0 {
			j.step()
		}
		more := false
		for i := range j.nodes {
			more = j.work(i) || more
		}
		if !more && len(j.net.links) == 0 {
			return
		}
	}
}

// run runs all events, with some messages between batches, and returns what came of it.
func (j *job) run(events []metamorphic.Event, batchMax, most int) (o outcome) {
	j.t.Helper()
	batch := uint64(0)
	for at := 0; at < len(events); batch++ {
		n := min(1+j.r.IntN(batchMax), len(events)-at)
		var c cluster.Change
		if most > 0 && j.r.IntN(2) == 0 {
			c.Moves = j.moves(most)
		}
		if most > 0 && j.r.IntN(3) == 0 {
			c.Orders = j.orders(most)
		}
		c.Settle = most > 0 && j.r.IntN(8) == 0
		j.route(batch, events[at:at+n], uint64(at), c)
		at += n
		for range j.r.IntN(30) {
			if len(j.net.links) > 0 {
				j.step()
			}
		}
	}
	j.rest()
	return j.outcome(len(events))
}

func (j *job) outcome(events int) (o outcome) {
	j.t.Helper()
	for i := range events {
		r, ok := j.got[uint64(i)]
		if !ok {
			j.t.Fatalf("no result of event %d", i)
		}
		o.results = append(o.results, r)
	}
	if len(j.flying) > 0 {
		j.t.Fatalf("%d groups never arrived", len(j.flying))
	}
	for i, n := range j.nodes {
		if n.Held() != 0 {
			j.t.Fatalf("%d actions wait at node %d", n.Held(), i)
		}
		hash, err := n.Hash()
		if err != nil {
			j.t.Fatal(err)
		}
		o.state.Sum(hash)
		if _, err := n.Close(); err != nil {
			j.t.Fatal(err)
		}
	}
	return o
}

func (o *outcome) difference(want *outcome) string {
	for i := range want.results {
		if a, b := want.results[i], o.results[i]; a.Committed != b.Committed || !slices.Equal(a.Bytes, b.Bytes) {
			return fmt.Sprintf("event %d: %+v, want %+v", i, b, a)
		}
	}
	if o.state != want.state {
		return fmt.Sprintf("state %v, want %v", o.state, want.state)
	}
	return ""
}

// I1, I2, I3, I6, I14: whatever moves when, with several routers whose sections come late, nothing is lost, doubled or
// out of order.
func TestLikeOneAfterTheOther(t *testing.T) {
	waited, moved, copied := 0, 0, 0
	for seed := range uint64(metamorphic.Seeds(60)) {
		r := rng.New(seed, 71)
		s := shape{nodes: 1 + r.IntN(4), routers: 1 + r.IntN(3), groups: 1 << (2 + r.IntN(4))}
		s.options = engine.Options{Workers: 1 + r.IntN(2), Strategy: []string{"auto", "serial", "ns-op-eager", "bfs-chain-lazy"}[r.IntN(4)]}
		events := metamorphic.Draw(r, 300, metamorphic.Shape{Keys: 4 + r.IntN(40), OpsMax: 1 + r.IntN(4), Tables: 3, Plain: true, NoLate: true, NoWindows: true})
		j := newJob(t, r, s)
		got, want := j.run(events, 1+r.IntN(60), []int{0, 1, 8}[r.IntN(3)]), serially(t, events)
		if d := got.difference(&want); d != "" {
			t.Fatalf("seed %d, %+v: %s", seed, s, d)
		}
		waited += j.held
		moved += j.moved
		copied += j.copied
	}
	if waited < 100 || moved < 100 || copied < 50 {
		t.Errorf("hardly anything waited (%d), moved (%d) or was copied (%d)", waited, moved, copied)
	}
}
