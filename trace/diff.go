package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/txn"
)

// Difference is the first event in which two traces differ.
type Difference struct {
	Event int    `json:"event"`
	What  string `json:"what"`
}

// side is one of two traces that are compared, event by event.
type side struct {
	t      *Reader
	feed   *txn.Feed
	at     int
	ended  bool
	digest []uint32
}

// next goes to the next event.
func (s *side) next() error {
	for s.at++; !s.ended && s.at >= s.feed.Len(); {
		s.feed.Reset()
		s.at = 0
		err := s.t.Batch(s.feed)
		s.ended = errors.Is(err, io.EOF)
		if err != nil && !s.ended {
			return err
		}
		s.digest = s.t.Digests
	}
	return nil
}

// text shows the event in hand.
func (s *side) text() string {
	out, err := s.feed.AppendJSON(nil, s.at)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// Diff finds the first event of two traces of the application that is another one, or
// whose result is; nil when they are the same. Batches do not matter. The states at the
// start are not compared. Both readers are at their beginnings.
func Diff(app *txn.App, a, b *Reader) (*Difference, error) {
	sides := [2]*side{{t: a, feed: app.NewFeed(), at: -1}, {t: b, feed: app.NewFeed(), at: -1}}
	for n := 0; ; n++ {
		for _, s := range sides {
			if err := s.next(); err != nil {
				return nil, err
			}
		}
		x, y := sides[0], sides[1]
		switch {
		case x.ended && y.ended:
			return endDifference(a, b), nil
		case x.ended:
			return &Difference{n, fmt.Sprintf("%s ends before it, %s has %s", a.file, b.file, y.text())}, nil
		case y.ended:
			return &Difference{n, fmt.Sprintf("%s has %s, %s ends before it", a.file, x.text(), b.file)}, nil
		}
		if x.feed.EventType(x.at) != y.feed.EventType(y.at) || !bytes.Equal(x.feed.AppendEvent(nil, x.at), y.feed.AppendEvent(nil, y.at)) {
			return &Difference{n, fmt.Sprintf("%s has %s, %s has %s", a.file, x.text(), b.file, y.text())}, nil
		}
		if len(x.digest) > 0 && len(y.digest) > 0 && x.digest[x.at] != y.digest[y.at] {
			return &Difference{n, fmt.Sprintf("outcome or result of %s", x.text())}, nil
		}
	}
}

// endDifference compares what came out of equal events.
func endDifference(a, b *Reader) *Difference {
	x, y := a.Footer, b.Footer
	switch {
	case x.ResultsHash != y.ResultsHash:
		return &Difference{x.Events, fmt.Sprintf("results %s and %s", x.ResultsHash, y.ResultsHash)}
	case x.StateHash != y.StateHash:
		return &Difference{x.Events, fmt.Sprintf("state at the end %s and %s", x.StateHash, y.StateHash)}
	}
	return nil
}
