package osed

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:       "osed",
	About:      "event detection: real short texts whose words burst form clusters, and fast ones are events",
	ReadsInput: true,
	Params: []program.Param{
		{Name: "window", Kind: program.Int, Default: "604800", Min: 1, Max: 1e9, Usage: "seconds of a time window"},
		{Name: "repeat", Kind: program.Int, Default: "3600", Min: 0, Max: 1e9, Usage: "seconds within which an equal text of a source is dropped"},
		{Name: "burst-min", Kind: program.Int, Default: "3", Min: 1, Max: 1e6, Usage: "texts of a window that a word is in to burst"},
		{Name: "burst", Kind: program.Int, Default: "300", Min: 0, Max: 1e6, Usage: "texts of the window with a word that bursts, in percent of its mean over all windows"},
		{Name: "similar", Kind: program.Int, Default: "50", Min: 1, Max: 100, Usage: "weight of its bursting words that a text shares with the cluster that it joins, in percent"},
		{Name: "recent", Kind: program.Int, Default: "2592000", Min: 0, Max: 1e9, Usage: "seconds without a text after which none joins a cluster"},
		{Name: "event-size", Kind: program.Int, Default: "5", Min: 1, Max: 1e6, Usage: "texts that make a cluster an event"},
		{Name: "event-rate", Kind: program.Int, Default: "200", Min: 0, Max: 1e6, Usage: "growth that makes a cluster an event, in percent"},
		program.Complexity,
	},
	New: newInstance,
}

func rulesOf(c *program.Config) rules {
	return rules{
		repeat: int64(c.Int("repeat")), burstMin: uint32(c.Int("burst-min")), burst: int64(c.Int("burst")), similar: int64(c.Int("similar")),
		recent: int64(c.Int("recent")), eventSize: uint32(c.Int("event-size")), eventRate: int64(c.Int("event-rate")),
	}
}

// textsOf reads the input and returns the texts of the run.
func textsOf(c *program.Config) (texts []Text, rows int, err error) {
	input, err := read(c.Input, int64(c.Int("window")))
	if err != nil {
		return nil, 0, err
	}
	n := c.Events
	if n == 0 {
		n = len(input.texts)
	}
	texts = make([]Text, n)
	for i := range texts {
		texts[i] = input.text(i)
	}
	return texts, len(input.texts), nil
}

func newInstance(c *program.Config) (*program.Instance, error) {
	texts, rows, err := textsOf(c)
	if err != nil {
		return nil, err
	}
	r, cost := rulesOf(c), c.Cost("complexity")
	a := New(r, cost)
	var told sums
	a.Events.Each(told.add)
	next := 0
	return &program.Instance{
		App:   a.App,
		Total: len(texts),
		Source: program.Generated(len(texts), func(f *txn.Feed) {
			a.Events.Push(f, texts[next])
			next++
		}),
		Check: func() error { return a.check(told) },
		Loops: loops(texts, r, cost),
		Notes: notes(texts, rows),
	}, nil
}

func notes(texts []Text, rows int) []string {
	words, different, empty := 0, map[string]bool{}, 0
	for _, t := range texts {
		words += len(t.Words)
		if len(t.Words) == 0 {
			empty++
		}
		for _, w := range t.Words {
			different[w.Text] = true
		}
	}
	return []string{
		fmt.Sprintf("%d texts, from an input of %d; %d of them have no words", len(texts), rows, empty),
		fmt.Sprintf("%d different words, %d in texts; %d windows", len(different), words, texts[len(texts)-1].Window+1),
	}
}
