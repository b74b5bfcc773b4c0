package osed

import (
	"fmt"
	"math/bits"
)

// sums adds up what results tell.
type sums struct{ texts, bursting, words, bursts, events int }

func (s *sums) add(f Found) {
	if !f.Done {
		return
	}
	s.texts++
	s.words += int(f.Words)
	s.bursts += bits.OnesCount16(f.Burst)
	if f.Burst != 0 {
		s.bursting++
	}
	if f.Started {
		s.events++
	}
}

// check verifies that statistics, texts and clusters tell of the same texts as
// the results do.
func (a *App) check(told sums) error {
	have := sums{texts: a.Texts.Len()}
	for _, s := range a.Statistics.All() {
		have.words += int(s.Total)
	}
	for _, t := range a.Trends.All() {
		have.bursts += int(t.Bursts)
	}
	members := map[uint32]uint32{}
	for id, t := range a.Texts.All() {
		members[t.Cluster]++
		c, _ := a.Clusters.Peek(t.Cluster)
		if t.Burst != 0 != (c.Kept > 0) {
			return fmt.Errorf("text %d has bursts %b and is in cluster %d of %d words", id, t.Burst, t.Cluster, c.Kept)
		}
	}
	for id, c := range a.Clusters.All() {
		if c.Size != members[id] || c.ID != id {
			return fmt.Errorf("cluster %d has id %d and %d texts, of which %d are there", id, c.ID, c.Size, members[id])
		}
		if c.Kept > 0 {
			have.bursting += int(c.Size)
		}
		if c.Event {
			have.events++
		}
	}
	if n := a.Clusters.Len(); n != len(members) {
		return fmt.Errorf("%d clusters, texts are in %d", n, len(members))
	}
	for word, id := range a.Index.All() {
		if c, _ := a.Clusters.Peek(id); id != 0 && c.Kept == 0 {
			return fmt.Errorf("word %q leads to cluster %d, which has no words", word, id)
		}
	}
	if have != told {
		return fmt.Errorf("the tables tell of %+v, the results of %+v", have, told)
	}
	return nil
}
