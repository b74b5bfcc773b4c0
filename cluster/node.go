package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/txn"
)

// Options of a node. The zero value works, but for the numbers.
type Options struct {
	Node    reconfig.Node
	Routers int              // how many there are. Default: 1
	Owners  *reconfig.Owners // at the start
	Engine  engine.Options   // of what executes transactions
}

// Node owns the rows of some groups and executes transactions. One goroutine uses it.
type Node struct {
	id        reconfig.Node
	app       *txn.App
	tables    []txn.TableView
	session   *engine.Session
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
	awaiting [][]*slot // by group that arrives: in the order in which they were made
	arrivals int       // groups that arrive
	leaving  []departure
	images   []*Image      // that came before the punctuation that tells of them
	guests   map[token]Row // and rows
	lends    []*action     // that are to be done behind what the feed has
	runnable []*action
	held     int
	pending  map[uint64]int // by batch: what of it waits
	done     uint64         // of batches before this one nothing waits

	rows     map[reconfig.Node][]Row // to be sent
	results  []Result
	arrived  []reconfig.Group
	Forwards int64 // rows that were lent
	Moved    int64 // bytes of groups that were sent
}

// NewNode makes a node of an application in its initial state, of which it keeps what it owns. The
// application is the node's from now on.
func NewNode(app *txn.App, o Options, out Transport) (*Node, error) {
	n := &Node{
		id: o.Node, app: app, tables: app.Tables(), owners: o.Owners, out: out, routers: max(o.Routers, 1),
		early: map[uint64][]*Section{}, slots: map[token]*slot{}, waiting: make([]int, o.Owners.Groups()), arriving: make([]bool, o.Owners.Groups()),
		awaiting: make([][]*slot, o.Owners.Groups()),
		guests:   map[token]Row{}, pending: map[uint64]int{}, rows: map[reconfig.Node][]Row{},
	}
	for _, t := range n.tables {
		if t.Windowed() {
			return nil, fmt.Errorf("table %s: windows look at its versions, which do not go from node to node", t.Name())
		}
	}
	n.footprint, n.probe = app.NewFootprint(), app.NewFeed()
	if err := n.remove(func(g reconfig.Group) bool { return n.owners.Of(g) != n.id }, nil); err != nil {
		return nil, err
	}
	var err error
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
	case *Section:
		return n.take(m)
	case *Rows:
		for _, row := range m.Rows {
			if err := n.comes(row); err != nil {
				return err
			}
		}
		return n.run()
	case *Image:
		if n.images = append(n.images, m); m.Version > n.owners.Version() {
			return nil
		}
		if err := n.arrive(); err != nil {
			return err
		}
		return n.run()
	}
	return fmt.Errorf("node %d got a %T", n.id, m)
}

// take keeps a section until those of all routers are there.
func (n *Node) take(s *Section) error {
	n.early[s.Batch] = append(n.early[s.Batch], s)
	for {
		all := n.early[n.batch]
		if len(all) < n.routers {
			return nil
		}
		delete(n.early, n.batch)
		slices.SortFunc(all, func(a, b *Section) int { return a.Router - b.Router })
		if err := n.begin(all); err != nil {
			return err
		}
	}
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
	if moves := all[0].Moves; len(moves) > 0 {
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
	for _, s := range all {
		if s.Version != n.owners.Version() {
			return fmt.Errorf("batch %d: router %d has owners of version %d, this node of %d", n.batch, s.Router, s.Version, n.owners.Version())
		}
	}
	return errors.Join(n.arrive(), n.depart())
}

// plan notes that a group comes or goes. It cannot while it is still on its way from somewhere.
func (n *Node) plan(m reconfig.Move, version uint64) error {
	if m.To != n.id && m.From != n.id {
		return nil
	}
	if n.arriving[m.Group] || slices.ContainsFunc(n.leaving, func(d departure) bool { return slices.Contains(d.groups, m.Group) }) {
		return fmt.Errorf("key group %d is to go from node %d to node %d, and is still on its way", m.Group, m.From, m.To)
	}
	if m.To == n.id {
		n.arriving[m.Group] = true
		n.arrivals++
	} else {
		n.leave(m, version)
	}
	return nil
}

// departure is groups that leave by one change of owners.
type departure struct {
	to      reconfig.Node
	version uint64
	groups  []reconfig.Group
}

func (n *Node) leave(m reconfig.Move, version uint64) {
	for i := range n.leaving {
		if d := &n.leaving[i]; d.to == m.To && d.version == version {
			d.groups = append(d.groups, m.Group)
			return
		}
	}
	n.leaving = append(n.leaving, departure{m.To, version, []reconfig.Group{m.Group}})
}

// add has an action done, now or, when it has to wait, later. It reports whether it kept it.
func (n *Node) add(a *action) (kept bool, err error) {
	if a.lend {
		n.queued(a, token{a.table, reconfig.KeyHash(a.key)}, false)
		n.hold(a)
		n.lends = append(n.lends, a)
		return true, nil
	}
	if len(n.slots) == 0 && len(a.guests) == 0 && n.arrivals == 0 {
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

// settled counts an action that waited and is done.
func (n *Node) settled(batch uint64) {
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
	row, _, err := n.row(a.table, a.key)
	if err != nil {
		panic(err) // a key that the router encoded
	}
	n.Forwards++
	n.rows[a.to] = append(n.rows[a.to], Row{Seq: a.seq, Table: a.table, Key: a.key, Row: row})
}

// row returns the byte form of a row, nil if there is none.
func (n *Node) row(table int, key []byte) (row []byte, found bool, err error) {
	row, found, err = n.tables[table].AppendRowOf(nil, key)
	if !found {
		row = nil
	}
	return row, found, err
}

// set makes a row what it is elsewhere.
func (n *Node) set(r *Row) error {
	if r.Row == nil {
		return n.tables[r.Table].DropRow(r.Key)
	}
	return n.tables[r.Table].LoadRow(r.Row)
}

// sendHome sends the rows back that a transaction borrowed.
func (n *Node) sendHome(a *action) error {
	for _, g := range a.guests {
		row, _, err := n.row(g.table, g.key)
		if err == nil {
			err = n.tables[g.table].DropRow(g.key)
		}
		if err != nil {
			return err
		}
		n.slots[token{g.table, reconfig.KeyHash(g.key)}].here = false
		n.rows[g.home] = append(n.rows[g.home], Row{Seq: a.seq, Home: true, Table: g.table, Key: g.key, Row: row})
	}
	return nil
}

// comes takes a row that was lent, or that comes home.
func (n *Node) comes(r Row) error {
	t := token{r.Table, reconfig.KeyHash(r.Key)}
	s := n.slots[t]
	if !r.Home && (s == nil || !s.waitedForBy(r.Seq)) { // the section that tells of the transaction is still on its way
		n.guests[t] = r
		return nil
	}
	if s == nil || s.queue[0].seq != r.Seq || s.lent != r.Home || !r.Home && s.here {
		return fmt.Errorf("node %d: a row of table %d for event %d, for which nobody waits", n.id, r.Table, r.Seq)
	}
	if err := n.set(&r); err != nil {
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

// depart sends the groups that leave, as soon as nobody waits for a row of them here.
func (n *Node) depart() error {
	for i := range n.leaving {
		d := &n.leaving[i]
		var now []reconfig.Group
		d.groups = slices.DeleteFunc(d.groups, func(g reconfig.Group) bool {
			if n.waiting[g] == 0 {
				now = append(now, g)
			}
			return n.waiting[g] == 0
		})
		if len(now) > 0 {
			if err := n.ship(d, now); err != nil {
				return err
			}
		}
	}
	n.leaving = slices.DeleteFunc(n.leaving, func(d departure) bool { return len(d.groups) == 0 })
	return nil
}

// ship sends groups to their new owner.
func (n *Node) ship(d *departure, groups []reconfig.Group) error {
	goes := make([]bool, n.owners.Groups())
	for _, g := range groups {
		goes[g] = true
	}
	m := &Image{From: n.id, Version: d.version, Groups: groups}
	err := n.remove(func(g reconfig.Group) bool { return goes[g] }, func(table int, row []byte) {
		item := append(binary.AppendUvarint(nil, uint64(table)), row...)
		m.Rows = append(m.Rows, item)
		m.Bytes += int64(len(item))
	})
	if err != nil {
		return err
	}
	n.Moved += m.Bytes
	return n.out.Send(d.to, m)
}

// remove takes the rows of groups out of the tables, after a look at each.
func (n *Node) remove(goes func(reconfig.Group) bool, look func(table int, row []byte)) error {
	for i, t := range n.tables {
		var keys [][]byte
		var failed error
		t.Rows(func(row []byte) bool {
			size, err := t.KeyLen(row)
			if err != nil {
				failed = err
				return false
			}
			if key := row[:size]; goes(n.owners.GroupOf(reconfig.KeyHash(key))) {
				if look != nil {
					look(i, row)
				}
				keys = append(keys, slices.Clone(key))
			}
			return true
		})
		if failed != nil {
			return failed
		}
		for _, key := range keys {
			if err := t.DropRow(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrive takes the groups that are there and ours by now, and does what waits for them.
func (n *Node) arrive() error {
	var failed error
	n.images = slices.DeleteFunc(n.images, func(m *Image) bool {
		if m.Version > n.owners.Version() || failed != nil {
			return false
		}
		failed = n.install(m)
		return true
	})
	return failed
}

func (n *Node) install(m *Image) error {
	for _, g := range m.Groups {
		if !n.arriving[g] {
			return fmt.Errorf("node %d: key group %d comes from node %d, and is here or not ours", n.id, g, m.From)
		}
	}
	for _, item := range m.Rows {
		table, size := binary.Uvarint(item)
		if size <= 0 || table >= uint64(len(n.tables)) {
			return fmt.Errorf("node %d: a row from node %d without its table", n.id, m.From)
		}
		if err := n.tables[table].LoadRow(item[size:]); err != nil {
			return err
		}
	}
	for _, g := range m.Groups {
		n.arriving[g] = false
		for _, s := range n.awaiting[g] {
			s.awaits = false
			n.wake(s.queue[0])
		}
		n.awaiting[g] = nil
	}
	n.arrivals -= len(m.Groups)
	n.arrived = append(n.arrived, m.Groups...)
	return nil
}

// flush sends what came of a message.
func (n *Node) flush(failed error) error {
	var errs []error
	for _, to := range slices.Sorted(maps.Keys(n.rows)) {
		errs = append(errs, n.out.Send(to, &Rows{n.id, n.rows[to]}))
	}
	clear(n.rows)
	if len(n.results) > 0 {
		errs = append(errs, n.out.Send(Control, &Results{n.id, n.results}))
		n.results = nil
	}
	done := n.batch
	for b := range n.pending {
		done = min(done, b)
	}
	if done != n.done || len(n.arrived) > 0 || failed != nil {
		p := &Progress{From: n.id, Taken: n.batch, Done: done, Held: n.held, Arrived: n.arrived, Version: n.owners.Version(), Err: failed}
		n.done, n.arrived = done, nil
		errs = append(errs, n.out.Send(Control, p))
	}
	return errors.Join(errs...)
}

// Hash returns the hash of what the node owns, while nothing waits.
func (n *Node) Hash() storage.Hash { return storage.StateHash(n.app) }

// Held returns how many actions wait.
func (n *Node) Held() int { return n.held }

// Close ends the node and returns what its engine did.
func (n *Node) Close() (engine.Metrics, error) { return n.session.Close() }
