package reconfig_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/reconfig"
)

func even(t *testing.T, groups int, nodes ...reconfig.Node) *reconfig.Owners {
	t.Helper()
	o, err := reconfig.Even(groups, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// I10: a table of owners divides all groups among the nodes, whatever moved.
func TestI10OwnersAreAPartition(t *testing.T) {
	for seed := range uint64(50) {
		r := rng.New(seed, 62)
		nodes := []reconfig.Node{0, 1, 2, 3}[:1+r.IntN(4)]
		o := even(t, 1<<(2+r.IntN(8)), nodes...)
		for range 20 {
			was := o
			next := append(slices.Clone(nodes), 7)[r.IntN(2):]
			slices.Sort(next)
			next = slices.Compact(next)
			moves := reconfig.Spread(o, next)
			var err error
			if o, err = o.Moved(moves); err != nil {
				t.Fatal(err)
			}
			total, low, high := 0, o.Groups(), 0
			for _, n := range next {
				c := o.Count(n)
				total, low, high = total+c, min(low, c), max(high, c)
			}
			if total != o.Groups() || high-low > 1 || o.Version() != was.Version()+1 {
				t.Fatalf("%d of %d groups are owned, %d to %d each, version %d", total, o.Groups(), low, high, o.Version())
			}
			// None moved that could have stayed.
			need := 0
			for _, n := range next {
				need += max(0, low-was.Count(n))
			}
			if len(moves) > need+len(next) {
				t.Fatalf("%d moves where %d do", len(moves), need)
			}
			nodes = next
		}
	}
}

func TestGroupsOfKeys(t *testing.T) {
	for _, groups := range []int{1, 2, 64, reconfig.GroupsDefault, reconfig.GroupsMax} {
		o := even(t, groups, 0)
		counts := make([]int, groups)
		const keys = 40_000
		for i := range keys {
			counts[o.GroupOf(reconfig.KeyHash(fmt.Append(nil, i)))]++
		}
		if most := slices.Max(counts); most > keys/groups*2+20 {
			t.Errorf("%d groups: one has %d keys of %d", groups, most, keys)
		}
	}
	// Files and processes depend on it: it stays as it is.
	if got := even(t, 1024, 0).GroupOf(reconfig.KeyHash([]byte("heddle"))); got != 807 {
		t.Errorf("the key heddle is in group %d", got)
	}
}

func TestOwnersThatCannotBe(t *testing.T) {
	for _, groups := range []int{-1, 0, 3, 1000, 8192} {
		if _, err := reconfig.Even(groups, []reconfig.Node{0}); err == nil {
			t.Errorf("%d groups are allowed", groups)
		}
	}
	if _, err := reconfig.Even(2, []reconfig.Node{0, 1, 2}); err == nil {
		t.Error("more nodes than groups")
	}
	o := even(t, 4, 0, 1)
	for _, moves := range [][]reconfig.Move{
		{{Group: 4, From: 0, To: 1}},
		{{Group: 0, From: 1, To: 0}},
		{{Group: 0, From: 0, To: 0}},
		{{Group: 0, From: 0, To: -1}},
		{{Group: 0, From: 0, To: 1}, {Group: 0, From: 0, To: 1}},
	} {
		if _, err := o.Moved(moves); err == nil {
			t.Errorf("%v is allowed", moves)
		}
	}
}

func TestRebalance(t *testing.T) {
	for seed := range uint64(100) {
		r := rng.New(seed, 63)
		nodes := []reconfig.Node{0, 1, 2, 3}[:2+r.IntN(3)]
		o := even(t, 256, nodes...)
		z := rng.NewZipf(256, r.Float64()*1.2)
		loads := make([]reconfig.Load, 256)
		for range 100_000 {
			loads[z.Draw(r)].Writes++
		}
		moves := reconfig.Rebalance(o, nodes, loads)
		next, err := o.Moved(moves)
		if err != nil {
			t.Fatal(err)
		}
		has, heaviest := map[reconfig.Node]float64{}, 0.0
		for g, l := range loads {
			has[next.Of(reconfig.Group(g))] += l.Writes
			heaviest = max(heaviest, l.Writes)
		}
		part := 100_000 / float64(len(nodes))
		for n, w := range has {
			if w > part*1.1+heaviest {
				t.Fatalf("seed %d: node %d has %.0f of %.0f, the heaviest group %.0f", seed, n, w, part, heaviest)
			}
		}
		if again := reconfig.Rebalance(next, nodes, loads); len(again) > 2 {
			t.Errorf("seed %d: %d moves, and then %d again", seed, len(moves), len(again))
		}
	}
}

func TestChunks(t *testing.T) {
	r := rng.New(1, 64)
	o := even(t, 64, 0, 1, 2)
	loads := make([]reconfig.Load, 64)
	for g := range loads {
		loads[g] = reconfig.Load{Bytes: int64(1 + r.IntN(100)), Writes: r.Float64()}
	}
	moves := reconfig.Spread(o, []reconfig.Node{3})
	for _, order := range append(reconfig.Orders(), "") {
		for _, m := range []reconfig.Migration{{}, {Groups: 1}, {Groups: 5}, {Bytes: 120}, {Groups: 3, Bytes: 150}} {
			m.Order = order
			chunks := reconfig.Chunks(moves, loads, m, 5)
			var all []reconfig.Move
			for _, c := range chunks {
				count, bytes := map[reconfig.Node]int{}, map[reconfig.Node]int64{}
				for _, move := range c {
					count[move.From]++
					bytes[move.From] += loads[move.Group].Bytes
				}
				for n := range count {
					if m.Groups > 0 && count[n] > m.Groups || m.Bytes > 0 && bytes[n] > m.Bytes && count[n] > 1 {
						t.Fatalf("%+v: %d groups of %d bytes from node %d", m, count[n], bytes[n], n)
					}
				}
				all = append(all, c...)
			}
			if m == (reconfig.Migration{Order: order}) && len(chunks) != 1 {
				t.Errorf("%q: %d chunks without a bound", order, len(chunks))
			}
			if order == reconfig.HotFirst && loads[chunks[0][0].Group].Writes < loads[chunks[len(chunks)-1][len(chunks[len(chunks)-1])-1].Group].Writes {
				t.Error("the coldest group goes first")
			}
			if !slices.EqualFunc(chunks, reconfig.Chunks(moves, loads, m, 5), slices.Equal) {
				t.Errorf("%+v: equal arguments give other chunks", m)
			}
			slices.SortFunc(all, func(a, b reconfig.Move) int { return int(a.Group) - int(b.Group) })
			if !slices.Equal(all, moves) {
				t.Fatalf("%+v: %d moves of %d", m, len(all), len(moves))
			}
		}
	}
	if reconfig.Chunks(nil, loads, reconfig.Migration{}, 1) != nil {
		t.Error("chunks of nothing")
	}
	if err := (reconfig.Migration{Order: "fast"}).Validate(); err == nil {
		t.Error("an order that does not exist")
	}
}

func TestAdaptedMigration(t *testing.T) {
	o := even(t, 64, 0, 1)
	moves := reconfig.Spread(o, []reconfig.Node{0})
	loads := make([]reconfig.Load, 64)
	for g := range loads {
		loads[g] = reconfig.Load{Bytes: 1 << 20, Writes: 1}
	}
	const link = 100 << 20
	if m := (reconfig.Migration{}).Adapted(moves, loads, link, time.Second); m.Bytes != 0 || m.Ahead || m.Order != reconfig.Random {
		t.Errorf("what takes a third of the pause moves as %+v", m)
	}
	if m := (reconfig.Migration{}).Adapted(moves, loads, link, 20*time.Millisecond); m.Bytes != 2<<20 || !m.Ahead {
		t.Errorf("what takes sixteen times the pause moves as %+v", m)
	}
	loads[40].Writes = 1000
	if m := (reconfig.Migration{}).Adapted(moves, loads, link, time.Second); m.Order != reconfig.HotFirst {
		t.Errorf("skewed groups move as %+v", m)
	}
	if m := (reconfig.Migration{Order: reconfig.ColdFirst, Groups: 2}).Adapted(moves, loads, link, 20*time.Millisecond); m.Order != reconfig.ColdFirst || m.Groups != 2 || m.Bytes != 0 {
		t.Errorf("what was asked for became %+v", m)
	}
}

// Groups that have a copy where they go are first, as many at a time as have changed so much since.
func TestChunksOfCopiedGroups(t *testing.T) {
	o := even(t, 64, 0, 1)
	moves := reconfig.Spread(o, []reconfig.Node{0})
	loads := make([]reconfig.Load, 64)
	for g := range loads { // a tenth of the rows changes in a second
		loads[g] = reconfig.Load{Bytes: 1 << 20, Rows: 100, Writes: 10, Copied: g%2 == 1}
	}
	m := (reconfig.Migration{}).Adapted(moves, loads, 100<<20, 10*time.Millisecond)
	if m.Order != reconfig.CopiedFirst || !m.Ahead || m.Bytes != 1<<20 {
		t.Fatalf("%+v", m)
	}
	var sizes []int
	for _, c := range reconfig.Chunks(moves, loads, m, 1) {
		for _, move := range c {
			if copied := len(sizes) < 2; loads[move.Group].Copied != copied {
				t.Errorf("group %d in chunk %d", move.Group, len(sizes))
			}
		}
		sizes = append(sizes, len(c))
	}
	if want := append([]int{10, 6}, slices.Repeat([]int{1}, 16)...); !slices.Equal(sizes, want) {
		t.Errorf("chunks of %v groups, want %v", sizes, want)
	}
}

// As many groups as can be go to where a copy of them is, and nobody gets more or fewer groups for that.
func TestPrefer(t *testing.T) {
	for seed := range uint64(300) {
		r := rng.New(seed, 62)
		copies := map[reconfig.Group]reconfig.Node{}
		var moves []reconfig.Move
		to, wanted := map[reconfig.Node]int{}, map[reconfig.Node]int{}
		for g := range reconfig.Group(r.IntN(30)) {
			m := reconfig.Move{Group: g, From: 0, To: reconfig.Node(1 + r.IntN(4))}
			to[m.To]++
			moves = append(moves, m)
			if r.IntN(2) == 0 {
				copies[g] = reconfig.Node(r.IntN(6)) // some where nobody goes
				wanted[copies[g]]++
			}
		}
		most := 0
		for n, k := range to {
			most += min(k, wanted[n])
		}
		lucky := 0
		for i, m := range reconfig.Prefer(moves, copies) {
			to[m.To]--
			if n, has := copies[m.Group]; has && n == m.To {
				lucky++
			}
			if m.Group != moves[i].Group || m.From != moves[i].From || m.To == m.From {
				t.Fatalf("seed %d: %+v became %+v", seed, moves[i], m)
			}
		}
		for n, k := range to {
			if k != 0 {
				t.Fatalf("seed %d: node %d gets %d too few", seed, n, k)
			}
		}
		if lucky != most {
			t.Fatalf("seed %d: %d groups go to their copies, %d could", seed, lucky, most)
		}
	}
}
