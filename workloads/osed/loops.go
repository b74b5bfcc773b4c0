package osed

import "github.com/heddle-stream/heddle/program"

// state is the tables as maps.
type state struct {
	seen       map[string]int64
	texts      map[uint32]Place
	statistics map[string]Statistic
	trends     map[string]Trend
	index      map[string]uint32
	clusters   map[uint32]Cluster
}

func newState() *state {
	return &state{
		seen: map[string]int64{}, texts: map[uint32]Place{}, statistics: map[string]Statistic{}, trends: map[string]Trend{},
		index: map[string]uint32{}, clusters: map[uint32]Cluster{},
	}
}

// loops are serial programs over the same texts.
func loops(texts []Text, r rules, cost program.Cost) []program.Loop {
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		s := newState()
		return func() {
			for i := range texts {
				s.text(&r, &texts[i], cost)
			}
		}
	}}}
}

func (s *state) text(r *rules, t *Text, cost program.Cost) {
	cost.SpendTimes(1)
	if len(t.Words) == 0 {
		return
	}
	content := t.content()
	cost.SpendTimes(1)
	if last, found := s.seen[content]; found && t.Time-last < r.repeat {
		return
	}
	s.seen[content] = t.Time
	cost.SpendTimes(3*len(t.Words) + 3)
	best := choice{rules: r, text: t}
	for i, w := range t.Words {
		statistic, trend := s.statistics[w.Text], s.trends[w.Text]
		statistic.count(t.Window)
		trend.look(r, statistic, t.ID, w.N)
		best.weigh(i, trend.Weight)
		s.statistics[w.Text], s.trends[w.Text] = statistic, trend
	}
	for i, w := range t.Words {
		if id := s.index[w.Text]; id != 0 && best.weights[i] > 0 {
			cluster := s.clusters[id]
			best.offer(id, &cluster)
		}
	}
	place := Place{Time: t.Time, Words: uint8(len(t.Words))}
	place.Burst, place.Cluster = best.result()
	s.texts[t.ID] = place
	cluster := s.clusters[place.Cluster]
	cluster.ID = place.Cluster
	cluster.join(t, place.Burst)
	cluster.grow(r, t.Time)
	s.clusters[place.Cluster] = cluster
	for i, w := range t.Words {
		if place.Burst>>i&1 != 0 {
			s.index[w.Text] = place.Cluster
		}
	}
}
