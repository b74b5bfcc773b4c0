package engine

import (
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/schedule"
	"github.com/heddle-stream/heddle/txn"
)

// Session runs an application on batches that are handed to it, for those who have other work
// between them: a job over streams, of which transactions are one step. One goroutine uses
// it.
type Session struct {
	r   *runner
	err error // that ended it
}

// NewSession begins a run without a source. What belongs to one, and what is kept for a
// restart, is not there: the options State, Rate, Linger, LatencyTarget and DeadLetters.
func NewSession(app *txn.App, opts Options) (*Session, error) {
	if opts.State != "" || opts.Rate != 0 || opts.Linger != 0 || opts.LatencyTarget != 0 || opts.DeadLetters != "" {
		return nil, errors.New("a session has no State, Rate, Linger, LatencyTarget and DeadLetters")
	}
	r, err := prepare(app, nil, opts)
	if err != nil {
		return nil, err
	}
	r.startVerifier()
	r.chooser.moving = r.app.Traffic().Nanos
	return &Session{r: r}, nil
}

// Feed is where the events of the next batch go.
func (s *Session) Feed() *txn.Feed { return s.r.feeds[0].feed }

// HasStrategy reports what is wrong with the name of a strategy, or nil.
func HasStrategy(name string) error {
	_, err := schedule.Parse(name)
	return err
}

// SetStrategy makes the next batches run under another strategy, named as in [Options].
func (s *Session) SetStrategy(name string) error {
	strategy, err := schedule.Parse(name)
	if err == nil {
		s.r.strategy = strategy
	}
	return err
}

// SetWorkers makes so many workers execute the next batches, at most [Options].WorkersMax.
func (s *Session) SetWorkers(n int) error {
	r := s.r
	if n < 1 || n > r.bound.Workers {
		return fmt.Errorf("workers %d: 1 to %d are allowed in this run", n, r.bound.Workers)
	}
	if n != r.opts.Workers {
		r.opts.Workers, r.m.Workers = n, n
		r.team.resize(n)
		r.graph.resize(n)
	}
	return nil
}

// Run executes what the feed holds as one batch, delivers the results to the sinks and
// empties the feed. After an error there is nothing to be done but to close.
func (s *Session) Run() error { return s.RunEach(nil) }

// RunEach is Run that tells of each event what became of it: its place in the feed, its verdict, and
// the byte form of its result, which is valid during the call.
func (s *Session) RunEach(each func(i int, verdict txn.Verdict, result []byte)) error {
	d := s.r.feeds[0]
	if s.err != nil || d.feed.Len() == 0 {
		return s.err
	}
	d.marks = append(d.marks, mark{upTo: d.feed.Len(), nanos: clock.NowNanos()})
	s.r.batches[0].Open(d.feed)
	s.r.graph.opened(0)
	s.r.feeds[1].reset()
	if s.err = s.r.batch(0, 1); s.err == nil && each != nil {
		x := s.r.batches[0]
		for i := range x.Events {
			each(i, x.Verdict(i), s.r.result(x, 0, i))
		}
	}
	d.reset()
	return s.err
}

// Save hands out the state between two batches as items, which are valid during the call.
func (s *Session) Save(add func(item []byte)) error {
	return errors.Join(s.err, checkpoint.SaveItems(s.r.app, s.r.point(), add))
}

// Load makes a session that did nothing yet go on from a state that was handed out. Next returns
// io.EOF behind the last item. What the session is verified with begins there, too.
func (s *Session) Load(next func() ([]byte, error)) error {
	r := s.r
	r.verifier = nil
	p, err := checkpoint.LoadItems(r.app, next)
	if err != nil {
		return err
	}
	r.stand(p)
	r.bound.Expire(p.Events, p.LastTime)
	r.m.Resumed = p.Events
	r.startVerifier()
	return nil
}

// Close ends the session and returns the account of what was done.
func (s *Session) Close() (Metrics, error) {
	r := s.r
	err := errors.Join(r.settle(nil), r.close())
	r.m.Spilled = r.app.Traffic()
	if err == nil && s.err == nil && r.verifier != nil {
		err = r.verifier.finish()
		r.m.Verified = err == nil
	}
	return r.m, errors.Join(err, r.app.LogErr())
}
