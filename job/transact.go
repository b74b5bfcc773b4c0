package job

import (
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/txn"
)

// Transactions runs an application as one operator of a job.
type Transactions[E, R any] struct {
	session *engine.Session
	events  *txn.Event[E, R]
	batch   int
	emit    func(R)
}

var (
	_ operators.Transactor[int, int] = (*Transactions[int, int])(nil)
	_ operators.KeptTransactor       = (*Transactions[int, int])(nil)
	_ operators.Strategist           = (*Transactions[int, int])(nil)
)

// NewTransactions binds an event type of an application: items are its events, and what it
// has to tell are results. It is closed when the job has ended.
func NewTransactions[E, R any](app *txn.App, events *txn.Event[E, R], o engine.Options) (*Transactions[E, R], error) {
	t := &Transactions[E, R]{events: events, batch: o.Batch}
	if t.batch == 0 {
		t.batch = engine.BatchDefault
	}
	events.Each(func(r R) { t.emit(r) })
	var err error
	t.session, err = engine.NewSession(app, o)
	return t, err
}

// Run implements [operators.Transactor].
func (t *Transactions[E, R]) Run(items []E, emit func(R)) error {
	t.emit = emit
	for len(items) > 0 {
		n := min(len(items), t.batch)
		for _, e := range items[:n] {
			t.events.Push(t.session.Feed(), e)
		}
		if err := t.session.Run(); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// SetStrategy implements [operators.Strategist].
func (t *Transactions[E, R]) SetStrategy(name string) error { return t.session.SetStrategy(name) }

// Save implements [operators.KeptTransactor].
func (t *Transactions[E, R]) Save(add func(item []byte)) error { return t.session.Save(add) }

// Load implements [operators.KeptTransactor].
func (t *Transactions[E, R]) Load(next func() ([]byte, error)) error { return t.session.Load(next) }

// Close ends the transactions and returns the account of them.
func (t *Transactions[E, R]) Close() (engine.Metrics, error) {
	return t.session.Close()
}
