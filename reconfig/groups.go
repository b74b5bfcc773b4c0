package reconfig

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"
)

const (
	// GroupsDefault is how many key groups there are unless told otherwise.
	GroupsDefault = 1024
	// GroupsMax is the most key groups: more cost more than they are good for.
	GroupsMax = 4096
)

// Group is the number of a key group.
type Group uint16

// Node is the number of somebody who owns groups.
type Node int32

// Nobody is no node.
const Nobody Node = -1

// KeyHash returns the hash of a key in byte form. It is the same in every process.
func KeyHash(key []byte) uint64 { return xxh3.Hash(key) }

// Owners tells who owns each group. It never changes, so that any goroutine may read it.
type Owners struct {
	version uint64
	shift   uint
	of      []Node
}

// OwnersOf returns the table of a version in which groups have the given owners, which it keeps.
func OwnersOf(version uint64, of []Node) (*Owners, error) {
	if groups := len(of); groups < 1 || groups > GroupsMax || groups&(groups-1) != 0 {
		return nil, fmt.Errorf("%d key groups: a power of two up to %d is allowed", groups, GroupsMax)
	}
	return &Owners{version: version, shift: uint(64 - bits.TrailingZeros(uint(len(of)))), of: of}, nil
}

// Even returns the first table of owners: every node has as many groups as any other, or one
// more, side by side.
func Even(groups int, nodes []Node) (*Owners, error) {
	o, err := OwnersOf(1, make([]Node, min(max(groups, 0), GroupsMax+1)))
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 || len(nodes) > groups {
		return nil, fmt.Errorf("%d nodes for %d key groups: 1 to %d are allowed", len(nodes), groups, groups)
	}
	for g := range o.of {
		o.of[g] = nodes[g*len(nodes)/groups]
	}
	return o, nil
}

// Version counts the tables of owners of a job, from 1.
func (o *Owners) Version() uint64 { return o.version }

// Groups returns how many groups there are.
func (o *Owners) Groups() int { return len(o.of) }

// GroupOf returns the group of a key by its hash.
func (o *Owners) GroupOf(hash uint64) Group { return Group(hash >> (o.shift & 127)) }

// Of returns the owner of a group.
func (o *Owners) Of(g Group) Node { return o.of[g] }

// Count returns how many groups a node owns.
func (o *Owners) Count(n Node) (count int) {
	for _, owner := range o.of {
		if owner == n {
			count++
		}
	}
	return count
}

// Nodes returns those who own groups, in their order.
func (o *Owners) Nodes() []Node {
	nodes := slices.Clone(o.of)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// Move is a group that goes from one node to another.
type Move struct {
	Group Group `json:"group"`
	From  Node  `json:"from"`
	To    Node  `json:"to"`
}

// Moved returns the next table, in which groups have moved, or an error that names the first move
// that cannot be.
func (o *Owners) Moved(moves []Move) (*Owners, error) {
	next := &Owners{version: o.version + 1, shift: o.shift, of: slices.Clone(o.of)}
	moved := make(map[Group]bool, len(moves))
	for _, m := range moves {
		switch {
		case int(m.Group) >= len(o.of):
			return nil, fmt.Errorf("key group %d: there are %d", m.Group, len(o.of))
		case moved[m.Group]:
			return nil, fmt.Errorf("key group %d moves twice", m.Group)
		case o.of[m.Group] != m.From:
			return nil, fmt.Errorf("key group %d is to leave node %d: node %d owns it", m.Group, m.From, o.of[m.Group])
		case m.To < 0 || m.To == m.From:
			return nil, fmt.Errorf("key group %d is to go from node %d to node %d", m.Group, m.From, m.To)
		}
		next.of[m.Group], moved[m.Group] = m.To, true
	}
	return next, nil
}
