// Package txn is how an application is written: tables, operations, events, and
// for each kind of event the list of operations that make up its transaction.
//
// # The idea
//
// An [App] is declared once. [NewTable] declares state, [Update], [Upsert],
// [Insert], [Delete] and [Get] declare named operations on one key of a table,
// [NewParam] and [NewRange] declare what else an operation looks at, [Merge] an
// operation that orders nothing, [Late] and [NewLateParam] keys that are computed
// from what was read, [NewWindow] and [NewFold] the recent versions of a key, and [On]
// declares an event type with two functions: the plan lists the operations of
// the event's transaction, the result turns its outcome into an output.
//
//	app := txn.New("ledger")
//	accounts := txn.NewTable[string, int64](app, "accounts")
//	poor := app.Reason("insufficient funds")
//	debit := txn.Update(accounts, "debit", func(_ txn.Ctx, cents int64, balance *int64) txn.Verdict {
//		if *balance < cents {
//			return poor
//		}
//		*balance -= cents
//		return txn.OK
//	})
//	credit := txn.Upsert(accounts, "credit", func(_ txn.Ctx, cents int64, balance *int64, _ bool) txn.Verdict {
//		*balance += cents
//		return txn.OK
//	})
//	transfers := txn.On(app, "transfer", func(p *txn.Plan, t Transfer) {
//		debit.At(p, t.From, t.Cents)
//		credit.At(p, t.To, t.Cents)
//	}, func(out txn.Outcome, t Transfer) bool { return out.Committed() })
//
// # What runs equals what a loop would do
//
// The outcome equals running the events one by one, in order, each one's
// operations in declaration order. An operation sees what stands at its place:
// the effects of all earlier committed transactions and of the operations
// before it in its own. If an operation returns a verdict other than [OK], its
// transaction aborts: nothing of it remains, and the first such verdict in
// declaration order is the reason.
//
// # What user functions must keep
//
//   - A plan is a pure function of its event: it reads no table.
//   - Operation and result functions are pure. An engine may call an operation
//     several times, on several goroutines, and on values which no serial run
//     would show, when it speculates; only the last call counts. A panic counts
//     only if a serial run would have panicked there.
//   - Pointers handed to a function are valid until it returns. Values that
//     share memory (slices, maps) need a [Clone] option.
//
// # For engines
//
// [Bind] gives an engine what it needs to run an application: planning, rows,
// execution, results. [Access] is the record of one state access that the task
// precedence graph is built from. An application needs neither.
package txn
