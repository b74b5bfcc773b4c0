package cluster

import (
	"slices"

	"github.com/heddle-stream/heddle/reconfig"
)

// action is something that a node has to do, in its place in the order.
type action struct {
	seq   uint64
	batch uint64
	lend  bool
	begun bool // it runs, or the row is on its way
	links []link

	// To execute a transaction.
	typ    int
	event  []byte
	guests []guest

	// To lend a row.
	to    reconfig.Node
	table int
	key   []byte
}

// link is an action's place in the queue of a row.
type link struct {
	*slot
	guest bool // the row is another node's
}

// token is a row by its table and the hash of its key. Two rows that share one wait for each other, which
// does no harm.
type token struct {
	table int
	hash  uint64
}

// slot is the queue of a row that is not there, or that somebody waits for. There is none for all other rows.
type slot struct {
	token  token
	group  reconfig.Group
	queue  []*action // in the order
	lent   bool      // ours, and away
	here   bool      // another node's, and here for the first of the queue
	awaits bool      // its group, see Node.awaiting
}

// ready reports whether an action can be done: it is the first in all its queues, and all rows are there.
func (n *Node) ready(a *action) bool {
	if a.begun {
		return false
	}
	for _, l := range a.links {
		s := l.slot
		switch {
		case s.queue[0] != a:
			return false
		case l.guest && !s.here:
			return false
		case !l.guest && (s.lent || n.arriving[s.group]):
			return false
		}
	}
	return true
}

// queued puts an action at the end of the queue of a row.
func (n *Node) queued(a *action, t token, guest bool) {
	s := n.slots[t]
	if s == nil {
		s = &slot{token: t, group: n.owners.GroupOf(t.hash)}
		n.slots[t] = s
	}
	for _, l := range a.links {
		if l.slot == s {
			return
		}
	}
	s.queue = append(s.queue, a)
	a.links = append(a.links, link{s, guest})
	if guest {
		return
	}
	n.waiting[s.group]++
	if n.arriving[s.group] && !s.awaits {
		s.awaits = true
		n.awaiting[s.group] = append(n.awaiting[s.group], s)
	}
}

// finish takes an action out of its queues, and does what it held up.
func (n *Node) finish(a *action) {
	for _, l := range a.links {
		s := l.slot
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if !l.guest {
			n.waiting[s.group]--
		}
	}
	for _, l := range a.links {
		if s := l.slot; len(s.queue) == 0 {
			delete(n.slots, s.token)
		} else {
			n.wake(s.queue[0])
		}
	}
	n.held--
	n.ended(a.batch)
}

// wake does what is ready.
func (n *Node) wake(a *action) {
	if !n.ready(a) {
		return
	}
	if a.lend {
		n.lend(a)
	} else {
		a.begun = true
		n.runnable = append(n.runnable, a)
	}
}

// waitedForBy reports whether a transaction is in the queue.
func (s *slot) waitedForBy(seq uint64) bool {
	return slices.ContainsFunc(s.queue, func(a *action) bool { return a.seq == seq })
}
