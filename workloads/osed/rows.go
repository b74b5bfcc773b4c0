package osed

import "math/bits"

// rules are the settings of the detection; times are in seconds, shares and
// rates in percent.
type rules struct {
	repeat    int64  // time within which an equal text is a repetition
	burstMin  uint32 // texts with the word in the window
	burst     int64  // their number over the mean of all windows
	similar   int64  // least similarity of a text to the cluster that it joins
	recent    int64  // time after which no text joins a cluster any more
	eventSize uint32 // texts of an event
	eventRate int64  // growth of an event
}

const (
	// A word that is in more than one of so many texts does not burst.
	rareness = 4
	// Added to the texts of the window before, since there may be none.
	rateFloor = 1
)

// Statistic is how often a word is in texts.
type Statistic struct {
	Window     int64
	Now, Total uint32 // texts in the window, and ever
}

func (s *Statistic) count(window int64) {
	if s.Window != window {
		s.Window, s.Now = window, 0
	}
	s.Now++
	s.Total++
}

// Trend is what a word weighed in the last text that has it, 0 if it did not burst.
type Trend struct {
	Weight int64
	Bursts uint32 // texts in which it burst
}

// look weighs a word that is n times in a text, by its rareness in all texts up
// to this one, whose id is their number.
func (t *Trend) look(r *rules, s Statistic, id, n uint32) {
	t.Weight = 0
	rare := int64(id) / int64(s.Total)
	if s.Now >= r.burstMin && rare >= rareness && int64(s.Now)*(s.Window+1)*100 >= r.burst*int64(s.Total) {
		t.Weight = int64(n) * int64(bits.Len64(uint64(rare)))
		t.Bursts++
	}
}

// Place is the row of a text.
type Place struct {
	Time    int64
	Cluster uint32
	Words   uint8
	Burst   uint16 // which of its words burst, the first in the lowest bit
}

// Cluster is a group of similar texts, with the id of its first one.
type Cluster struct {
	ID          uint32
	Size        uint32
	Born, Last  int64
	Window      int64
	Now, Before uint32 // texts in the window and the one before it
	Rate        int64
	Event       bool
	Since       int64
	Kept        uint32           // words put in ever
	Words       [wordsMax]string // the latest of them
}

// has tells whether the cluster keeps a word.
func (c *Cluster) has(word string) bool {
	for _, w := range c.Words[:min(c.Kept, wordsMax)] {
		if w == word {
			return true
		}
	}
	return false
}

// join puts a text in, which makes the cluster if it is not there yet.
func (c *Cluster) join(t *Text, burst uint16) {
	if c.Size == 0 {
		c.Born, c.Window = t.Time, t.Window
	}
	if t.Window != c.Window {
		c.Before = 0
		if t.Window == c.Window+1 {
			c.Before = c.Now
		}
		c.Window, c.Now = t.Window, 0
	}
	c.Size++
	c.Now++
	c.Last = t.Time
	for i, w := range t.Words {
		if burst>>i&1 != 0 && !c.has(w.Text) {
			c.Words[c.Kept%wordsMax] = w.Text
			c.Kept++
		}
	}
}

// grow computes the growth, and makes a cluster that grows fast an event for good.
func (c *Cluster) grow(r *rules, now int64) {
	c.Rate = 100 * int64(c.Now) / (int64(c.Before) + rateFloor)
	if !c.Event && c.Kept > 0 && c.Size >= r.eventSize && c.Rate >= r.eventRate {
		c.Event, c.Since = true, now
	}
}

// choice finds the most similar of several clusters.
type choice struct {
	rules   *rules
	text    *Text
	weights [wordsMax]int64
	total   int64
	best    int64 // similarity
	cluster uint32
}

// weigh notes the weight of the text's i-th word.
func (c *choice) weigh(i int, weight int64) {
	c.weights[i] = weight
	c.total += weight
}

// offer compares a cluster: the share of the weights whose words it has. Of
// equals it is the one that was made last.
func (c *choice) offer(id uint32, cluster *Cluster) {
	if c.text.Time-cluster.Last > c.rules.recent {
		return
	}
	shared := int64(0)
	for i, w := range c.text.Words {
		if c.weights[i] > 0 && cluster.has(w.Text) {
			shared += c.weights[i]
		}
	}
	similar := 100 * shared / c.total
	if similar >= c.rules.similar && (similar > c.best || similar == c.best && id > c.cluster) {
		c.best, c.cluster = similar, id
	}
}

// result returns which words burst, and the cluster: a new one, which has the
// text's id, if none is similar.
func (c *choice) result() (burst uint16, cluster uint32) {
	for i, w := range c.weights[:len(c.text.Words)] {
		if w > 0 {
			burst |= 1 << i
		}
	}
	if c.cluster == 0 {
		return burst, c.text.ID
	}
	return burst, c.cluster
}
