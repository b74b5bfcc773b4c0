package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Options of a node. The zero value works, but for the numbers.
type Options struct {
	Node    reconfig.Node
	Routers int              // how many there are. Default: 1
	Owners  *reconfig.Owners // by which it keeps rows of its application
	Refresh uint64           // after so many batches copies elsewhere get what changed. Default: 200
	Engine  engine.Options   // of what executes transactions
}

// Node owns the rows of some groups and executes transactions. One goroutine uses it.
type Node struct {
	id        reconfig.Node
	app       *txn.App
	tables    []txn.TableView
	session   *engine.Session
	room      int // for workers
	footprint *txn.Footprint
	probe     *txn.Feed // for footprints
	owners    *reconfig.Owners
	out       Transport

	routers int
	early   map[uint64][]*Section // of batches that are not whole
	batch   uint64                // the next one
	seqs    []uint64              // of the events in the session's feed
	ran     []*action             // those in the feed that were held

	slots    map[token]*slot
	waiting  []int // by group: actions at home that wait
	arriving []bool
	awaiting [][]*slot                // by group that arrives: in the order in which they were made
	arrivals map[reconfig.Group]int64 // those, and since when
	leaving  []departure
	images   []*Image       // that came before the punctuation that tells of them
	guests   map[token]Loan // and rows
	lends    []*action      // that are to be done behind what the feed has
	runnable []*action
	held     int
	pending  map[uint64]int // by batch: what of it waits
	done     uint64         // of batches before this one nothing waits, as control knows
	taken    uint64         // batches that were taken up, as control knows

	refreshes uint64 // batches between two refreshes of copies
	copies    copies // of our groups, elsewhere
	staged    staged // of others' groups, here
	saving    saving

	loans   map[reconfig.Node][]Loan // to be sent
	results []Result
	news    Progress // to be told
}

// NewNode makes a node of an application in its initial state, of which it keeps what it owns. The
// application is the node's from now on.
func NewNode(app *txn.App, o Options, out Transport) (*Node, error) {
	n := &Node{
		id: o.Node, app: app, tables: app.Tables(), owners: o.Owners, out: out, routers: max(o.Routers, 1),
		early: map[uint64][]*Section{}, slots: map[token]*slot{}, waiting: make([]int, o.Owners.Groups()), arriving: make([]bool, o.Owners.Groups()),
		awaiting: make([][]*slot, o.Owners.Groups()),
		arrivals: map[reconfig.Group]int64{},
		guests:   map[token]Loan{}, pending: map[uint64]int{}, loans: map[reconfig.Node][]Loan{},
		refreshes: cmp.Or(o.Refresh, 200), copies: newCopies(), staged: newStaged(),
	}
	for _, t := range n.tables {
		if t.Windowed() {
			return nil, fmt.Errorf("table %s: windows look at its versions, which do not go from node to node", t.Name())
		}
	}
	n.footprint, n.probe = app.NewFootprint(), app.NewFeed()
	if err := n.keepOurs(); err != nil {
		return nil, err
	}
	var err error
	n.room = max(o.Engine.Workers, min(runtime.GOMAXPROCS(0), engine.WorkersMax))
	o.Engine.WorkersMax = n.room
	n.session, err = engine.NewSession(app, o.Engine)
	return n, err
}

// Handle takes a message.
func (n *Node) Handle(m Message) error {
	err := n.handle(m)
	return errors.Join(err, n.flush(err))
}

func (n *Node) handle(m Message) error {
	switch m := m.(type) {
	case *Join:
		return n.join(m)
	case *Section:
		n.early[m.Batch] = append(n.early[m.Batch], m)
		return n.take()
	case *Loans:
		for _, l := range m.Loans {
			if err := n.comes(l); err != nil {
				return err
			}
		}
		return errors.Join(n.run(), n.take())
	case *Image:
		if n.images = append(n.images, m); m.Version > n.owners.Version() {
			return nil
		}
		if err := n.arrive(); err != nil {
			return err
		}
		return errors.Join(n.run(), n.take())
	case *CopyRows:
		return n.stage(m)
	case *Credit:
		n.copies.flying[m.From] -= m.Bytes
		return nil
	}
	return fmt.Errorf("node %d got a %T", n.id, m)
}

// join begins the work of the node.
func (n *Node) join(m *Join) error {
	n.owners, n.batch, n.done, n.taken = m.Owners, m.Batch, m.Batch, m.Batch
	if m.Saves {
		n.saving.changed, n.saving.came = n.app.Track(), map[reconfig.Group]bool{}
	}
	if m.Restore {
		if err := n.restore(); err != nil {
			return err
		}
	}
	return n.set(&m.Settings)
}

// take takes up the batches of which the sections of all routers are there, up to one that is to find nothing under way.
func (n *Node) take() error {
	for {
		all := n.early[n.batch]
		if len(all) < n.routers || all[0].Settle && !n.settled() {
			return nil
		}
		delete(n.early, n.batch)
		slices.SortFunc(all, func(a, b *Section) int { return a.Router - b.Router })
		if err := n.begin(all); err != nil {
			return err
		}
	}
}

// settled reports whether nothing of the batches that were taken up is under way: no transaction waits, no row is
// away, no group is on its way to or from here.
func (n *Node) settled() bool { return n.held == 0 && len(n.arrivals) == 0 && len(n.leaving) == 0 }

// set makes settings hold.
func (n *Node) set(s *reconfig.Settings) error {
	for name, variant := range s.Logic {
		if err := n.app.SetLogic(name, variant); err != nil {
			return err
		}
	}
	if s.Strategy != "" {
		if err := n.session.SetStrategy(s.Strategy); err != nil {
			return err
		}
	}
	if s.Workers > 0 {
		return n.session.SetWorkers(min(s.Workers, n.room))
	}
	return nil
}

// begin takes up a batch.
func (n *Node) begin(all []*Section) error {
	if err := n.change(all); err != nil {
		return err
	}
	for _, s := range all {
		r := reader{src: s.Actions}
		a := &action{batch: n.batch}
		for range s.Count {
			if err := r.action(a); err != nil {
				return fmt.Errorf("batch %d from router %d: %w", n.batch, s.Router, err)
			}
			kept, err := n.add(a)
			if err != nil {
				return err
			}
			if kept {
				a = &action{batch: n.batch}
			}
		}
	}
	n.batch++
	return n.run()
}

// change goes over to the table of owners of a batch, which is the same for all routers.
func (n *Node) change(all []*Section) error {
	c := all[0].Change
	if c.Save > 0 {
		n.cut(c.Save, c.SaveAll)
	}
	if moves := c.Moves; len(moves) > 0 {
		next, err := n.owners.Moved(moves)
		if err != nil {
			return fmt.Errorf("batch %d: %w", n.batch, err)
		}
		for _, m := range moves {
			if err := n.plan(m, next.Version()); err != nil {
				return fmt.Errorf("batch %d: %w", n.batch, err)
			}
		}
		n.owners = next
	}
	if err := errors.Join(n.obey(c.Orders), n.set(&c.Settings)); err != nil {
		return err
	}
	for _, s := range all {
		if s.Version != n.owners.Version() {
			return fmt.Errorf("batch %d: router %d has owners of version %d, this node of %d", n.batch, s.Router, s.Version, n.owners.Version())
		}
	}
	return errors.Join(n.arrive(), n.depart())
}

// add has an action done, now or, when it has to wait, later. It reports whether it kept it.
func (n *Node) add(a *action) (kept bool, err error) {
	if a.lend {
		n.queued(a, token{a.table, reconfig.KeyHash(a.key)}, false)
		n.hold(a)
		n.lends = append(n.lends, a)
		return true, nil
	}
	if len(n.slots) == 0 && len(a.guests) == 0 && len(n.arrivals) == 0 {
		return false, n.push(a)
	}
	keys, err := n.keysOf(a)
	if err != nil {
		return false, err
	}
	waits := len(a.guests) > 0
	for _, k := range keys {
		hash := reconfig.KeyHash(k.Key)
		waits = waits || n.slots[token{k.Table, hash}] != nil || n.arriving[n.owners.GroupOf(hash)]
	}
	if !waits {
		return false, n.push(a)
	}
	for _, g := range a.guests {
		n.queued(a, token{g.table, reconfig.KeyHash(g.key)}, true)
	}
	for _, k := range keys { // those of guests have their place already
		n.queued(a, token{k.Table, reconfig.KeyHash(k.Key)}, false)
	}
	n.hold(a)
	for _, g := range a.guests {
		if r, came := n.guests[token{g.table, reconfig.KeyHash(g.key)}]; came {
			delete(n.guests, token{g.table, reconfig.KeyHash(g.key)})
			if err := n.comes(r); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// hold counts an action that waits.
func (n *Node) hold(a *action) {
	n.held++
	n.pending[a.batch]++
}

// ended counts an action that waited and is done.
func (n *Node) ended(batch uint64) {
	if n.pending[batch]--; n.pending[batch] == 0 {
		delete(n.pending, batch)
	}
}

// keysOf returns the keys of an action's event.
func (n *Node) keysOf(a *action) ([]txn.NamedKey, error) {
	n.probe.Reset()
	if _, err := n.probe.PushEncoded(a.typ, a.event); err != nil {
		return nil, fmt.Errorf("event %d: %w", a.seq, err)
	}
	return n.footprint.Of(n.probe, 0)
}

// push puts an event into the feed of what runs next.
func (n *Node) push(a *action) error {
	if invariants.Enabled {
		if err := n.mayWrite(a); err != nil {
			return err
		}
	}
	rest, err := n.session.Feed().PushEncoded(a.typ, a.event)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err != nil {
		return fmt.Errorf("event %d: %w", a.seq, err)
	}
	n.seqs = append(n.seqs, a.seq)
	return nil
}

// run executes what is ready, and what becomes ready by that.
func (n *Node) run() error {
	for {
		for _, a := range n.runnable {
			if err := n.push(a); err != nil {
				return err
			}
		}
		n.ran, n.runnable = append(n.ran[:0], n.runnable...), n.runnable[:0]
		if len(n.seqs) > 0 {
			err := n.session.RunEach(func(i int, verdict txn.Verdict, result []byte) {
				n.results = append(n.results, Result{n.seqs[i], verdict == txn.OK, slices.Clone(result)})
			})
			if err != nil {
				return err
			}
			n.seqs = n.seqs[:0]
		}
		for _, a := range n.ran {
			if err := n.sendHome(a); err != nil {
				return err
			}
			n.finish(a)
		}
		lends := n.lends
		n.lends = nil
		for _, a := range lends {
			n.wake(a)
		}
		if len(n.runnable) == 0 {
			return n.depart()
		}
	}
}

// lend sends a row to where a transaction runs.
func (n *Node) lend(a *action) {
	a.begun, a.links[0].lent = true, true
	row, err := n.row(a.table, a.key)
	if err != nil {
		panic(err) // a key that the router encoded
	}
	n.loans[a.to] = append(n.loans[a.to], Loan{a.seq, false, row})
}

// row returns the row of a key as it is now.
func (n *Node) row(table int, key []byte) (Row, error) {
	row, found, err := n.tables[table].AppendRowOf(nil, key)
	if !found {
		row = nil
	}
	return Row{table, key, row}, err
}

// put makes a row what it is elsewhere.
func (n *Node) put(r *Row) error {
	if r.Table < 0 || r.Table >= len(n.tables) {
		return fmt.Errorf("node %d: a row of table %d: there are %d", n.id, r.Table, len(n.tables))
	}
	if r.Row == nil {
		return n.tables[r.Table].DropRow(r.Key)
	}
	return n.tables[r.Table].LoadRow(r.Row)
}

// sendHome sends the rows back that a transaction borrowed.
func (n *Node) sendHome(a *action) error {
	for _, g := range a.guests {
		row, err := n.row(g.table, g.key)
		if err == nil {
			err = n.tables[g.table].DropRow(g.key)
		}
		if err != nil {
			return err
		}
		n.slots[token{g.table, reconfig.KeyHash(g.key)}].here = false
		n.loans[g.home] = append(n.loans[g.home], Loan{a.seq, true, row})
	}
	return nil
}

// comes takes a row that was lent, or that comes home.
func (n *Node) comes(r Loan) error {
	t := token{r.Table, reconfig.KeyHash(r.Key)}
	s := n.slots[t]
	if !r.Home && (s == nil || !s.waitedForBy(r.Seq)) { // the section that tells of the transaction is still on its way
		n.guests[t] = r
		return nil
	}
	if s == nil || s.queue[0].seq != r.Seq || s.lent != r.Home || !r.Home && s.here {
		return fmt.Errorf("node %d: a row of table %d for event %d, for which nobody waits", n.id, r.Table, r.Seq)
	}
	if err := n.put(&r.Row); err != nil {
		return err
	}
	a := s.queue[0]
	if r.Home {
		s.lent = false
		n.finish(a)
		return nil
	}
	s.here = true
	n.wake(a)
	return nil
}

// flush sends what came of a message.
func (n *Node) flush(failed error) error {
	var errs []error
	for _, to := range slices.Sorted(maps.Keys(n.loans)) {
		errs = append(errs, n.out.Send(to, &Loans{n.id, n.loans[to]}))
	}
	clear(n.loans)
	if len(n.results) > 0 {
		errs = append(errs, n.out.Send(Control, &Results{n.id, n.results}))
		n.results = nil
	}
	done := n.batch
	for b := range n.pending {
		done = min(done, b)
	}
	p := n.news
	if done != n.done || n.batch != n.taken || len(p.Arrived)+len(p.Sizes)+len(p.Copied) > 0 || p.Saved > 0 || failed != nil {
		p.From, p.Taken, p.Done, p.Held, p.Err = n.id, n.batch, done, n.held, failed
		n.done, n.taken, n.news = done, n.batch, Progress{Moved: p.Moved}
		errs = append(errs, n.out.Send(Control, &p))
	}
	return errors.Join(errs...)
}

// Hash returns the hash of what the node owns, while nothing waits. Copies that it has of other nodes' groups are gone
// then.
func (n *Node) Hash() (storage.Hash, error) {
	for g := range n.staged.of {
		if err := n.unstage(g); err != nil {
			return storage.Hash{}, err
		}
	}
	return storage.StateHash(n.app), nil
}

// Held returns how many actions wait.
func (n *Node) Held() int { return n.held }

// Close ends the node and returns what its engine did.
func (n *Node) Close() (engine.Metrics, error) { return n.session.Close() }
