package engine

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/internal/oracle"
	"github.com/heddle-stream/heddle/txn"
)

// verifier runs the serial model beside a run and compares four things: each
// outcome, each value read, each result, and at the end the tables.
type verifier struct {
	app    *txn.App
	oracle *oracle.Oracle
}

func newVerifier(app *txn.App, events int, lastTime int64) *verifier {
	return &verifier{app, oracle.New(app, events, lastTime)}
}

// batch compares the first done events of a batch; number is that of its first
// event in the run. After a panic the model has to panic at the same event.
func (v *verifier) batch(x *txn.Batch, feed *txn.Feed, number, done int, p *txn.Panic, result func(e int) []byte) error {
	for e := range done {
		tx, want, err := v.oracle.Event(feed, e)
		if err != nil {
			return &DifferenceError{number + e, fmt.Sprintf("expected a panic (%v), got none", err)}
		}
		if diff := v.event(x, e, tx, want, result(e)); diff != "" {
			return &DifferenceError{number + e, diff}
		}
	}
	if p == nil {
		return nil
	}
	_, _, err := v.oracle.Event(feed, done)
	var want *oracle.PanicError
	if !errors.As(err, &want) || want.What != p.What {
		return &DifferenceError{number + done, fmt.Sprintf("expected %v, got a panic of %s %q: %v", err, p.What, p.Name, p.Value)}
	}
	return nil
}

func (v *verifier) event(x *txn.Batch, e int, tx *txn.BoxedTxn, want, got []byte) string {
	if tx.Verdict != x.Verdict(e) {
		return fmt.Sprintf("outcome: expected %s, got %s", v.verdict(tx.Verdict), v.verdict(x.Verdict(e)))
	}
	if tx.SeenHash() != x.Seen[e] {
		at := ""
		for i := range tx.Steps[:tx.Ran] {
			s := &tx.Steps[i]
			at += fmt.Sprintf("; %s on table %s, key %v: expected %v", s.Name, v.app.Tables()[s.Table].Name(), s.Key, show(s.Before))
		}
		return "values read: other than the model's" + at
	}
	if !bytes.Equal(want, got) {
		return fmt.Sprintf("result: expected %x, got %x", want, got)
	}
	return ""
}

func show(b txn.Boxed) string {
	if !b.Ok {
		return "absent"
	}
	return fmt.Sprint(b.Val)
}

func (v *verifier) verdict(verdict txn.Verdict) string {
	if verdict == txn.OK {
		return "commit"
	}
	return fmt.Sprintf("abort (%s)", v.app.ReasonText(verdict))
}

// finish compares the tables.
func (v *verifier) finish() error {
	if diff := v.oracle.Difference(); diff != "" {
		return &DifferenceError{-1, diff}
	}
	return nil
}
