package reconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/rng"
)

// Load is what is known of a group.
type Load struct {
	Bytes  int64   // of its rows
	Rows   int     // that it has
	Writes float64 // per second, lately
	Copied bool    // a copy is where it goes, at most a second old
}

// rest returns the bytes that are left to be sent when the group goes.
func (l *Load) rest() int64 {
	if !l.Copied {
		return l.Bytes
	}
	return min(l.Bytes, int64(l.Writes*float64(l.Bytes)/float64(max(l.Rows, 1))))
}

// Spread returns the fewest moves after which every one of the nodes has as many groups as any
// other, or one more, and nobody else has any. Of a node that has too many those with the highest
// numbers go.
func Spread(o *Owners, nodes []Node) (moves []Move) {
	most := slices.Clone(nodes) // who has most keeps one more, where it does not come out even
	slices.SortStableFunc(most, func(a, b Node) int { return cmp.Compare(o.Count(b), o.Count(a)) })
	wants := map[Node]int{}
	for i, n := range most {
		wants[n] = o.Groups() / len(nodes)
		if i < o.Groups()%len(nodes) {
			wants[n]++
		}
	}
	var homeless []Group
	for g, n := range o.of {
		if wants[n] == 0 {
			homeless = append(homeless, Group(g))
		} else {
			wants[n]--
		}
	}
	for _, n := range nodes {
		for range wants[n] {
			g := homeless[0]
			homeless = homeless[1:]
			moves = append(moves, Move{g, o.of[g], n})
		}
	}
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Group, b.Group) })
	return moves
}

// Prefer returns moves of the same groups away from the same nodes, with as many to each node as before, in which
// as many as can be go to the node that has a copy already.
func Prefer(moves []Move, copies map[Group]Node) []Move {
	left := map[Node]int{}
	for _, m := range moves {
		left[m.To]++
	}
	var others []int // moves that have no such luck
	out := slices.Clone(moves)
	for i, m := range moves {
		if to, has := copies[m.Group]; has && to != m.From && left[to] > 0 {
			left[to]--
			out[i].To = to
		} else {
			others = append(others, i)
		}
	}
	// The rest keeps where it goes, as long as there is room.
	var homeless []int
	for _, i := range others {
		if to := moves[i].To; left[to] > 0 {
			left[to]--
		} else {
			homeless = append(homeless, i)
		}
	}
	for _, i := range homeless {
		for _, m := range moves {
			if left[m.To] > 0 && m.To != moves[i].From {
				left[m.To]--
				out[i].To = m.To
				break
			}
		}
	}
	return out
}

// Rebalance returns moves after which the nodes have about the same load, and nobody else has any:
// each at most a twentieth more than its part, as far as single groups allow that. A group without load counts a
// little, so that these are shared as well.
func Rebalance(o *Owners, nodes []Node, loads []Load) []Move {
	total := 0.0
	for _, l := range loads {
		total += l.Writes
	}
	little := max(total, 1) / float64(len(loads)) / 100
	weight := func(g Group) float64 { return loads[g].Writes + little }
	next := slices.Clone(o.of)
	// A group that is more than its node's part makes room for itself: what it met there goes in the next round.
	for range rebalanceRounds {
		moves := assign(&Owners{of: next}, nodes, weight, total/float64(len(nodes))/20)
		if len(moves) == 0 {
			break
		}
		for _, m := range moves {
			next[m.Group] = m.To
		}
	}
	var moves []Move
	for g, to := range next {
		if to != o.of[g] {
			moves = append(moves, Move{Group(g), o.of[g], to})
		}
	}
	return moves
}

const rebalanceRounds = 8

// assign moves groups away from those who have more than their part, and slack, the heaviest first that
// do not take more than what is too much, to those who have least.
func assign(o *Owners, nodes []Node, weight func(Group) float64, slack float64) (moves []Move) {
	has, total := map[Node]float64{}, 0.0
	groups := map[Node][]Group{}
	for g, n := range o.of {
		w := weight(Group(g))
		total += w
		has[n] += w
		groups[n] = append(groups[n], Group(g))
	}
	part := total / float64(len(nodes))
	var homeless []Group
	for _, n := range o.Nodes() {
		if !slices.Contains(nodes, n) {
			homeless = append(homeless, groups[n]...)
			continue
		}
		all := groups[n]
		slices.SortStableFunc(all, func(a, b Group) int {
			return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(b, a))
		})
		for _, g := range all {
			// What is more than the slack allows is given away, unless less would be left than is too much now.
			if left := has[n] - weight(g); left >= part || has[n] > part+slack && left >= part-weight(g)/2 {
				has[n] = left
				homeless = append(homeless, g)
			}
		}
	}
	slices.SortStableFunc(homeless, func(a, b Group) int { return cmp.Compare(weight(b), weight(a)) })
	for _, g := range homeless {
		to := slices.MinFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(has[a], has[b]), cmp.Compare(a, b)) })
		has[to] += weight(g)
		if to != o.of[g] {
			moves = append(moves, Move{g, o.of[g], to})
		}
	}
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Group, b.Group) })
	return moves
}

// Order is in which order groups move.
type Order string

// The orders.
const (
	Ascending   Order = "ascending" // by number
	Descending  Order = "descending"
	Random      Order = "random"
	HotFirst    Order = "hot" // most writes first
	ColdFirst   Order = "cold"
	LargestLast Order = "small" // fewest bytes first
	Largest     Order = "large"
	CopiedFirst Order = "copied" // those of which a copy is there already, while others are copied
)

// Orders returns their names.
func Orders() []Order {
	return []Order{Ascending, Descending, Random, HotFirst, ColdFirst, LargestLast, Largest, CopiedFirst}
}

// Migration says how groups move.
type Migration struct {
	// Order of the groups. Default: those first that have a copy where they go, if there are any; else hot first if that
	// is worth it, or random.
	Order Order `json:"order,omitempty"`
	// Groups is how many move at a time, at most, from each node that loses some. Default: as many as
	// the other bounds allow.
	Groups int `json:"groups,omitempty"`
	// Bytes is how many move at a time, at most, from each node, unless a single group has more. Of those that
	// have a copy where they go, what has changed since counts.
	// Default: no bound.
	Bytes int64 `json:"bytes,omitempty"`
	// Ahead copies groups while their owner goes on with them, so that only what changed since then is left to
	// be sent while they wait.
	Ahead bool `json:"ahead,omitempty"`
	// Gap is the least number of batches between two chunks.
	Gap int `json:"gap,omitempty"`
	// Stop makes all wait until all is moved.
	Stop bool `json:"stop,omitempty"`
}

// Validate reports what is wrong, or nil.
func (m Migration) Validate() error {
	if m.Order != "" && !slices.Contains(Orders(), m.Order) {
		names := make([]string, 0, len(Orders()))
		for _, o := range Orders() {
			names = append(names, string(o))
		}
		return fmt.Errorf("order %q: one of %s", m.Order, strings.Join(names, ", "))
	}
	if m.Groups < 0 || m.Bytes < 0 || m.Gap < 0 {
		return fmt.Errorf("groups %d, bytes %d, gap %d: must not be negative", m.Groups, m.Bytes, m.Gap)
	}
	return nil
}

// Chunks puts moves into an order and into chunks. Each chunk takes of each node that loses groups as many as
// the bounds allow, so that nodes send at the same time. Equal arguments give equal chunks.
func Chunks(moves []Move, loads []Load, m Migration, seed uint64) (chunks [][]Move) {
	moves = slices.Clone(moves)
	m.Order.sort(moves, loads, seed)
	by := map[Node][]Move{}
	var from []Node
	for _, move := range moves {
		if by[move.From] == nil {
			from = append(from, move.From)
		}
		by[move.From] = append(by[move.From], move)
	}
	for {
		var chunk []Move
		for _, n := range from {
			k := m.prefix(by[n], loads)
			chunk = append(chunk, by[n][:k]...)
			by[n] = by[n][k:]
		}
		if len(chunk) == 0 {
			return chunks
		}
		chunks = append(chunks, chunk)
	}
}

// prefix returns how many of the moves go together.
func (m Migration) prefix(moves []Move, loads []Load) int {
	bytes := int64(0)
	for i, move := range moves {
		bytes += loads[move.Group].rest()
		if i > 0 && m.Bytes > 0 && bytes > m.Bytes || m.Groups > 0 && i == m.Groups {
			return i
		}
	}
	return len(moves)
}

func (o Order) sort(moves []Move, loads []Load, seed uint64) {
	by := func(weight func(l Load) float64) {
		slices.SortStableFunc(moves, func(a, b Move) int {
			return cmp.Compare(weight(loads[a.Group]), weight(loads[b.Group]))
		})
	}
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Group, b.Group) })
	switch o {
	case Descending:
		slices.Reverse(moves)
	case Random:
		r := rng.New(seed, 61)
		r.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
	case HotFirst:
		by(func(l Load) float64 { return -l.Writes })
	case ColdFirst:
		by(func(l Load) float64 { return l.Writes })
	case LargestLast:
		by(func(l Load) float64 { return float64(l.Bytes) })
	case Largest:
		by(func(l Load) float64 { return -float64(l.Bytes) })
	case CopiedFirst:
		by(func(l Load) float64 {
			if l.Copied {
				return 0
			}
			return 1
		})
	case Ascending:
	}
}

// Adapted fills in what is left open, by what is known of the groups that move and of the link: chunks that
// take about the given pause, copying ahead, groups that are copied first, or hot ones where a few have most of the writes.
func (m Migration) Adapted(moves []Move, loads []Load, bytesPerSecond float64, pause time.Duration) Migration {
	bytes, writes, hottest, copied := int64(0), 0.0, []float64{}, false
	for _, move := range moves {
		l := loads[move.Group]
		bytes += l.rest()
		writes += l.Writes
		copied = copied || l.Copied
		hottest = append(hottest, l.Writes)
	}
	if m.Order == "" {
		m.Order = Random
		slices.Sort(hottest)
		top := 0.0
		for _, w := range hottest[len(hottest)-len(hottest)/10:] {
			top += w
		}
		if top > writes/3 { // a tenth of the groups has a third of the writes
			m.Order = HotFirst
		}
		if copied {
			m.Order = CopiedFirst
		}
	}
	budget := int64(bytesPerSecond * pause.Seconds())
	if bytes <= budget {
		return m // all at once is as good as it gets
	}
	if m.Bytes == 0 && m.Groups == 0 && !m.Stop {
		m.Bytes, m.Ahead = max(budget, 1), true
	}
	return m
}
