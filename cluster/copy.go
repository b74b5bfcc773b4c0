package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

const (
	// surveySlice is how many rows are looked at between two messages.
	surveySlice = 2048
	// copyBytes is how many bytes of copies go in a message, about.
	copyBytes = 64 << 10
	// flyingMax bounds the bytes of copies on their way to a node: what else goes there waits behind them.
	flyingMax = 512 << 10
)

// watch is what a node knows of a group of its own that is to move, or of which others have a copy. Every change of
// a row makes it older, and the next message about it newer again, so that a copy is as new as the
// number of rows that were sent of it: a count, which cannot be lost like a mark.
type watch struct {
	keys  map[string]struct{} // see joinKey; some may be gone
	known bool                // the survey is over

	to    reconfig.Node // who gets a copy, or Nobody
	order uint64
	sent  uint64
	left  []string            // what is not copied yet
	stale map[string]struct{} // what is, and has changed
	begun bool                // left is filled
	whole bool                // it was told that all was sent
}

// copies looks after groups of a node for the sake of other nodes. Rows that change are found again by what
// the tables remember of changes; the survey, which makes a list of all rows of some groups, goes through
// them in small steps in the same way, beside the transactions.
type copies struct {
	watched map[reconfig.Group]*watch
	changed *txn.Changes            // as long as anything is watched
	survey  *txn.Changes            // while one runs
	next    []reconfig.Group        // to be surveyed by the next one
	now     []reconfig.Group        // and by this one
	begun   []reconfig.Group        // whose copies are not whole, in the order in which they were ordered
	flying  map[reconfig.Node]int64 // bytes of copies on their way
	at      uint64                  // the batch of the last refresh
	due     []reconfig.Group        // of which what changed is still to be sent
}

func newCopies() copies {
	return copies{watched: map[reconfig.Group]*watch{}, flying: map[reconfig.Node]int64{}}
}

func joinKey(table int, key []byte) string {
	return string(append(binary.AppendUvarint(make([]byte, 0, len(key)+1), uint64(table)), key...))
}

func splitKey(k string) (table int, key []byte) {
	u, size := binary.Uvarint([]byte(k[:min(len(k), binary.MaxVarintLen64)]))
	return int(u), []byte(k[size:])
}

// obey does what orders say of our groups, and of copies here.
func (n *Node) obey(orders []Order) error {
	for _, o := range orders {
		switch {
		case o.From == n.id && o.Kind == Release:
			n.copies.forget(o.Group)
		case o.From == n.id:
			w := n.watch(o.Group)
			switch {
			case o.Kind == Copy:
				w.copyTo(o.To, n.batch+1)
				n.copies.begun = append(n.copies.begun, o.Group)
			case w.known: // from before
				n.news.Sizes = append(n.news.Sizes, n.size(o.Group, w))
			}
		case o.Kind == Release:
			if err := n.release(o.Group, n.batch); err != nil {
				return err
			}
		}
	}
	return nil
}

// watch begins to look after a group.
func (n *Node) watch(g reconfig.Group) *watch {
	c := &n.copies
	w := c.watched[g]
	if w == nil {
		w = &watch{keys: map[string]struct{}{}, stale: map[string]struct{}{}, to: reconfig.Nobody}
		c.watched[g] = w
		c.next = append(c.next, g)
	}
	if c.changed == nil {
		c.changed = n.app.Track()
	}
	return w
}

// copyTo makes another node the one that gets a copy, from the beginning.
func (w *watch) copyTo(to reconfig.Node, order uint64) {
	w.to, w.order, w.left, w.sent, w.begun, w.whole = to, order, nil, 0, false, false
	clear(w.stale)
}

// forget ends to look after a group.
func (c *copies) forget(g reconfig.Group) {
	delete(c.watched, g)
	is := func(other reconfig.Group) bool { return other == g }
	for _, list := range []*[]reconfig.Group{&c.next, &c.now, &c.begun} {
		*list = slices.DeleteFunc(*list, is)
	}
	if len(c.watched) > 0 {
		return
	}
	if c.survey != nil {
		c.survey.Stop()
		c.survey = nil
	}
	if c.changed != nil {
		c.changed.Stop()
		c.changed = nil
	}
}

// Work does a little of what can be done at any time, and reports whether there is more to do now.
func (n *Node) Work() (more bool, err error) {
	if n.saving.part == 0 && len(n.copies.watched) == 0 {
		return false, nil
	}
	more, err = n.saveOn()
	if err == nil {
		var also bool
		also, err = n.watchOn()
		more = more || also
	}
	if ferr := n.flush(err); err == nil {
		err = ferr
	}
	return more, err
}

// watchOn does a little for groups that are watched.
func (n *Node) watchOn() (more bool, err error) {
	c := &n.copies
	switch {
	case len(c.watched) == 0:
		return false, nil
	case c.survey != nil || len(c.next) > 0:
		n.surveyOn(surveySlice)
		more = true
	default:
		if more, err = n.copyOn(); err == nil && !more {
			more, err = n.refreshOn()
		}
	}
	return more, err
}

// surveyOn looks at some more rows for the groups that are being surveyed.
func (n *Node) surveyOn(rows int) {
	c := &n.copies
	if c.survey == nil {
		c.now, c.next = c.next, nil
		c.survey = n.app.Track()
		c.survey.All()
		c.survey.Cut()
		c.survey.TakeGone(func(int, []byte) {})
	}
	more := c.survey.TakeKeys(rows, func(table int, key []byte) {
		if w := c.watched[n.groupOf(key)]; w != nil && !w.known {
			w.keys[joinKey(table, key)] = struct{}{}
		}
	})
	if more {
		return
	}
	c.survey.Stop()
	c.survey = nil
	for _, g := range c.now {
		w := c.watched[g]
		w.known = true
		n.news.Sizes = append(n.news.Sizes, n.size(g, w))
	}
	c.now = nil
}

// size returns what a group has, by the first rows: they are much alike, or many.
func (n *Node) size(g reconfig.Group, w *watch) Size {
	const looks = 2
	s, i := Size{Group: g, Rows: len(w.keys)}, 0
	for k := range w.keys {
		if i++; i > looks {
			break
		}
		table, key := splitKey(k)
		if r, err := n.row(table, key); err == nil {
			s.Bytes += r.bytes()
		}
	}
	if i > looks {
		s.Bytes = s.Bytes * int64(s.Rows) / looks
	}
	return s
}

// copyOn sends some more rows of the first group that is being copied and whose receiver keeps up.
func (n *Node) copyOn() (more bool, err error) {
	c := &n.copies
	for i, g := range c.begun {
		w := c.watched[g]
		if c.flying[w.to] > flyingMax {
			continue
		}
		if !w.begun {
			w.left, w.begun = slices.Sorted(maps.Keys(w.keys)), true
		}
		m := &CopyRows{Group: g, Whole: true}
		for bytes := int64(0); len(w.left) > 0; w.left = w.left[1:] {
			if bytes > copyBytes {
				m.Whole = false
				break
			}
			table, key := splitKey(w.left[0])
			r, err := n.row(table, key)
			if err != nil {
				return false, err
			}
			bytes += r.bytes()
			m.Rows = append(m.Rows, r)
		}
		if w.whole = m.Whole; w.whole {
			c.begun = slices.Delete(c.begun, i, i+1)
		}
		return true, n.sendCopy(w, m)
	}
	return false, nil
}

// sendCopy sends rows to who has the copy.
func (n *Node) sendCopy(w *watch, m *CopyRows) error {
	m.From, m.Order = n.id, w.order
	n.copies.flying[w.to] += m.bytes()
	w.sent += uint64(len(m.Rows))
	return n.out.Send(w.to, m)
}

func (m *CopyRows) bytes() (sum int64) {
	for i := range m.Rows {
		sum += m.Rows[i].bytes()
	}
	return sum
}

// note finds out which rows of watched groups changed.
func (n *Node) note() {
	c := &n.copies
	changed := func(table int, key []byte) {
		w := c.watched[n.groupOf(key)]
		if w == nil {
			return
		}
		k := joinKey(table, key)
		w.keys[k] = struct{}{}
		if w.to != reconfig.Nobody && w.begun {
			w.stale[k] = struct{}{}
		}
	}
	c.changed.Cut()
	c.changed.TakeGone(changed)
	for c.changed.TakeKeys(1<<20, changed) {
	}
}

// fresh returns the rows of a group that changed since they were copied.
func (n *Node) fresh(w *watch) (rows []Row, err error) {
	for k := range w.stale {
		table, key := splitKey(k)
		r, err := n.row(table, key)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	clear(w.stale)
	return rows, nil
}

// refreshOn sends what changed of one more group to who has its copy.
func (n *Node) refreshOn() (more bool, err error) {
	c := &n.copies
	if len(c.due) == 0 {
		if n.batch < c.at+n.refreshes {
			return false, nil
		}
		c.at = n.batch
		n.note()
		c.due = slices.Sorted(maps.Keys(c.watched))
	}
	g := c.due[0]
	w := c.watched[g]
	if w != nil && len(w.stale) > 0 {
		if c.flying[w.to] > flyingMax {
			return false, nil // until some have come
		}
		rows, err := n.fresh(w)
		if err == nil {
			err = n.sendCopy(w, &CopyRows{Group: g, Rows: rows})
		}
		if err != nil {
			return false, err
		}
	}
	c.due = c.due[1:]
	return len(c.due) > 0, nil
}

// rest makes images of groups what their copies at the receiver lack, if it has them, after a survey of those
// of which nobody told that they would go.
func (n *Node) rest(images []*Image, to reconfig.Node) error {
	for _, m := range images {
		n.watch(m.Group)
	}
	unknown := func(m *Image) bool { return !n.copies.watched[m.Group].known }
	for slices.ContainsFunc(images, unknown) {
		n.surveyOn(1 << 20)
	}
	n.note()
	for _, m := range images {
		w := n.copies.watched[m.Group]
		if w.to != to || !w.whole {
			continue
		}
		m.Order, m.Copied = w.order, w.sent
		var err error
		if m.Rows, err = n.fresh(w); err != nil {
			return err
		}
	}
	return nil
}

// staged is copies of groups of other nodes. Their rows are in the tables like ours, where no transaction sees them: it
// names rows that are ours or were lent to it. So a group whose copy is here needs nothing when it comes
// but what has changed.
type staged struct {
	of    map[reconfig.Group]*stage
	since map[reconfig.Group]uint64 // orders before this one no longer hold
}

type stage struct {
	order uint64
	keys  map[string]struct{} // see joinKey; some may be gone
	got   uint64
}

func newStaged() staged {
	return staged{of: map[reconfig.Group]*stage{}, since: map[reconfig.Group]uint64{}}
}

// stage takes rows of a copy.
func (n *Node) stage(m *CopyRows) error {
	s := n.staged.of[m.Group]
	if m.Order >= n.staged.since[m.Group] && (s == nil || s.order < m.Order) {
		if err := n.unstage(m.Group); err != nil {
			return err
		}
		s = &stage{order: m.Order, keys: map[string]struct{}{}}
		n.staged.of[m.Group] = s
	}
	n.news.Moved += m.bytes()
	if s != nil && s.order == m.Order {
		s.got += uint64(len(m.Rows))
		for i := range m.Rows {
			if err := n.stageRow(s, &m.Rows[i]); err != nil {
				return err
			}
		}
		if m.Whole {
			n.news.Copied = append(n.news.Copied, m.Group)
		}
	}
	return n.out.Send(m.From, &Credit{n.id, m.bytes()})
}

// stageRow takes a row of a copy, unless it was lent to us: then it goes home, which its owner takes for a change, and it is
// sent again.
func (n *Node) stageRow(s *stage, r *Row) error {
	if n.lentToUs(r.Table, r.Key) {
		return nil
	}
	s.keys[joinKey(r.Table, r.Key)] = struct{}{}
	return n.put(r)
}

// unstage drops the copy of a group.
func (n *Node) unstage(g reconfig.Group) error {
	s := n.staged.of[g]
	delete(n.staged.of, g)
	if s == nil {
		return nil
	}
	for k := range s.keys {
		table, key := splitKey(k)
		if n.lentToUs(table, key) { // that one goes home
			continue
		}
		if err := n.tables[table].DropRow(key); err != nil {
			return err
		}
	}
	return nil
}

// lentToUs reports whether a row is another node's and here for a transaction.
func (n *Node) lentToUs(table int, key []byte) bool {
	s := n.slots[token{table, reconfig.KeyHash(key)}]
	return s != nil && s.here
}

// release drops the copy of a group that was ordered before a batch, and all that still comes of it.
func (n *Node) release(g reconfig.Group, batch uint64) error {
	n.staged.since[g] = batch + 1
	if c := n.staged.of[g]; c != nil && c.order <= batch {
		return n.unstage(g)
	}
	return nil
}

// settle makes the copy to which an image is the rest ours, or drops what there is of one if the image has all.
func (n *Node) settle(m *Image) error {
	if m.Order == 0 {
		return errors.Join(n.unstage(m.Group), n.adopt(m.Group, nil))
	}
	c := n.staged.of[m.Group]
	if c == nil || c.order != m.Order || c.got != m.Copied {
		return fmt.Errorf("key group %d comes from node %d as what changed since a copy that is not here", m.Group, m.From)
	}
	delete(n.staged.of, m.Group)
	return n.adopt(m.Group, c)
}
