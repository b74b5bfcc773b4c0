package cluster

import (
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/reconfig"
)

// departure is groups that leave by one change of owners.
type departure struct {
	to      reconfig.Node
	version uint64
	groups  []reconfig.Group
}

// plan notes that a group comes or goes. It cannot while it is still on its way from somewhere.
func (n *Node) plan(m reconfig.Move, version uint64) error {
	if m.To != n.id && m.From != n.id {
		return n.release(m.Group, n.batch) // it is no longer the one of which this was a copy
	}
	if n.arriving[m.Group] || slices.ContainsFunc(n.leaving, func(d departure) bool { return slices.Contains(d.groups, m.Group) }) {
		return fmt.Errorf("key group %d is to go from node %d to node %d, and is still on its way", m.Group, m.From, m.To)
	}
	if m.To == n.id {
		n.arriving[m.Group] = true
		n.arrivals[m.Group] = clock.NowNanos()
	} else {
		n.leave(m, version)
	}
	return nil
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

// ship sends groups to their new owner, one by one, so that each is there as soon as it can be.
func (n *Node) ship(d *departure, groups []reconfig.Group) error {
	images := make([]*Image, len(groups))
	for i, g := range groups {
		images[i] = &Image{From: n.id, Group: g, Version: d.version}
	}
	if err := n.rest(images, d.to); err != nil {
		return err
	}
	for _, m := range images {
		if invariants.Enabled {
			m.Sum = n.groupSum(m.Group)
		}
		w := n.copies.watched[m.Group]
		for k := range w.keys {
			table, key := splitKey(k)
			if m.Order == 0 {
				r, err := n.row(table, key)
				if err != nil {
					return err
				}
				if r.Row != nil {
					m.Rows = append(m.Rows, r)
				}
			}
			if err := n.tables[table].DropRow(key); err != nil {
				return err
			}
		}
		n.copies.forget(m.Group)
		if err := n.out.Send(d.to, m); err != nil {
			return err
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
	if int(m.Group) >= len(n.arriving) || !n.arriving[m.Group] {
		return fmt.Errorf("node %d: key group %d comes from node %d, and is here or not ours", n.id, m.Group, m.From)
	}
	if err := n.settle(m); err != nil {
		return fmt.Errorf("node %d: %w", n.id, err)
	}
	for i := range m.Rows {
		n.news.Moved += m.Rows[i].bytes()
		if err := n.put(&m.Rows[i]); err != nil {
			return err
		}
	}
	if invariants.Enabled && m.From != Control {
		if sum := n.groupSum(m.Group); sum != m.Sum {
			return fmt.Errorf("node %d: key group %d is not what it was at node %d: %v, and was %v", n.id, m.Group, m.From, sum, m.Sum)
		}
	}
	n.arriving[m.Group] = false
	for _, s := range n.awaiting[m.Group] {
		s.awaits = false
		n.wake(s.queue[0])
	}
	n.awaiting[m.Group] = nil
	n.news.Arrived = append(n.news.Arrived, Arrival{m.Group, m.Version, clock.NowNanos() - n.arrivals[m.Group]})
	delete(n.arrivals, m.Group)
	return nil
}

// keepOurs drops the rows of groups that others own, and tells how large ours are.
func (n *Node) keepOurs() error {
	sizes := map[reconfig.Group]Size{}
	for _, t := range n.tables {
		var others [][]byte
		var failed error
		t.Rows(func(row []byte) bool {
			size, err := t.KeyLen(row)
			if err != nil {
				failed = err
				return false
			}
			key := row[:size]
			if g := n.groupOf(key); n.owners.Of(g) != n.id {
				others = append(others, slices.Clone(key))
			} else {
				s := sizes[g]
				sizes[g] = Size{g, s.Rows + 1, s.Bytes + int64(len(key)+len(row))}
			}
			return true
		})
		if failed != nil {
			return failed
		}
		for _, key := range others {
			if err := t.DropRow(key); err != nil {
				return err
			}
		}
	}
	for _, g := range slices.Sorted(maps.Keys(sizes)) {
		n.news.Sizes = append(n.news.Sizes, sizes[g])
	}
	return nil
}

func (n *Node) groupOf(key []byte) reconfig.Group { return n.owners.GroupOf(reconfig.KeyHash(key)) }
