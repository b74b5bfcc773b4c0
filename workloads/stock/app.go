package stock

import (
	"fmt"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Side is the side of the book that an order stands on.
type Side uint8

// The sides.
const (
	Bid Side = iota
	Ask
)

func (s Side) String() string { return [...]string{"bid", "ask"}[s] }

// Kind is what happened to an order.
type Kind uint8

// The kinds of rows.
const (
	Created   Kind = iota
	Changed        // executed in part
	Moved          // given another price
	Executed       // deleted: nothing was left
	Cancelled      // deleted: the rest was taken back
	kinds
)

// Row is a row of the order flow. Volumes are in 1e-8 BTC, prices in cents.
type Row struct {
	Time   int64
	ID     uint64
	Price  int64
	Old    int64 // the price that the order had before
	Volume int64 // what is left of the order
	Side   Side
	Kind   Kind
}

// Turnover is what was executed in a window, in cents times 1e-8 BTC.
type Turnover struct{ Value, Trades int64 }

// Order is what rests of an order, and the turnover that its last row saw.
type Order struct {
	Price, Volume int64
	Seen          Turnover
	Side          Side
}

// Level is a price on one side of the book.
type Level struct {
	Side  Side
	Price int64
}

// Resting is what rests at a level.
type Resting struct{ Volume, Orders int64 }

// Execution is the latest execution of a side.
type Execution struct{ Price, Volume, Turnover int64 }

// Result is the outcome of a row.
type Result struct {
	ID     uint64
	Kind   Kind
	Done   bool
	Reason string
	Seen   Turnover
}

// App is the declared application.
type App struct {
	App        *txn.App
	Orders     *txn.Table[uint64, Order]
	Levels     *txn.Table[Level, Resting]
	Executions *txn.Table[Side, Execution]
	Rows       *txn.Event[Row, Result]

	cost   program.Cost
	recent *txn.Fold[Side, Execution, Turnover]
	before *txn.Param[uint64, Order]
}

// New declares the application, whose book is empty. The window is a length of
// time in ms.
func New(window int, cost program.Cost) *App {
	app := txn.New("stock")
	a := &App{
		App: app, cost: cost, Orders: txn.NewTable[uint64, Order](app, "orders"),
		Levels: txn.NewTable[Level, Resting](app, "levels"), Executions: txn.NewTable[Side, Execution](app, "executions"),
	}
	a.recent = txn.NewFold(a.Executions, "turnover", txn.Within(int64(window)), func(t *Turnover, x Execution) {
		t.Value += x.Turnover
		if x.Volume > 0 {
			t.Trades++
		}
	}, func(later, earlier Turnover) Turnover {
		return Turnover{later.Value - earlier.Value, later.Trades - earlier.Trades}
	})
	a.before = txn.NewParam(a.Orders, "order before")
	enter, settle, remove := a.orderOps()
	credit, debit := a.levelOps()
	trade := a.trade()
	a.Rows = txn.On(app, "row", func(p *txn.Plan, e Row) {
		if e.Kind == Created {
			enter.At(p, e.ID, e, a.recent.Of(p, e.Side))
			credit.At(p, Level{e.Side, e.Price}, e.Volume)
			return
		}
		before := a.before.AtStart(p, e.ID)
		settle.At(p, e.ID, e, a.recent.Of(p, e.Side))
		debit.At(p, Level{e.Side, e.Old}, e, before)
		if e.Kind == Moved {
			credit.At(p, Level{e.Side, e.Price}, e.Volume)
		}
		if e.Kind == Changed || e.Kind == Executed {
			trade.At(p, e.Side, e, before)
		}
		if e.Kind == Executed || e.Kind == Cancelled {
			remove.At(p, e.ID, struct{}{})
		}
	}, func(out txn.Outcome, e Row) Result {
		order, ok := enter.After(out)
		if e.Kind != Created {
			order, ok = settle.After(out)
		}
		return Result{e.ID, e.Kind, ok, out.Reason(), order.Seen}
	}, txn.EventTime[Row, Result](func(e Row) int64 { return e.Time }))
	return a
}

// orderOps declares what happens to the order itself. Whether the transaction
// commits is decided here, by its first operation.
func (a *App) orderOps() (enter, settle *txn.Op[uint64, Order, Row], remove *txn.Op[uint64, Order, struct{}]) {
	unknown, side := a.App.Reason("unknown order"), a.App.Reason("order of the other side")
	price, volume := a.App.Reason("order has another price"), a.App.Reason("volume does not fit")
	enter = txn.Insert(a.Orders, "enter", func(c txn.Ctx, e Row, o *Order) txn.Verdict {
		a.cost.Spend(c)
		*o = Order{e.Price, e.Volume, a.recent.Get(c), e.Side}
		return txn.OK
	})
	settle = txn.Upsert(a.Orders, "settle", func(c txn.Ctx, e Row, o *Order, found bool) txn.Verdict {
		a.cost.Spend(c)
		switch {
		case !found:
			return unknown
		case o.Side != e.Side:
			return side
		case o.Price != e.Old:
			return price
		case !fits(&e, o.Volume):
			return volume
		}
		if e.Kind == Moved {
			o.Price = e.Price
		}
		o.Volume, o.Seen = e.Volume, a.recent.Get(c)
		return txn.OK
	})
	remove = txn.Delete(a.Orders, "remove", func(c txn.Ctx, _ struct{}, _ Order) txn.Verdict {
		a.cost.Spend(c)
		return txn.OK
	})
	return enter, settle, remove
}

// fits reports whether an order with that volume can become what the row says.
// An order that moves may get any: market orders to buy spend a sum of money.
func fits(e *Row, volume int64) bool {
	switch e.Kind {
	case Changed, Executed:
		return e.Volume <= volume
	case Cancelled:
		return e.Volume == volume
	case Created, Moved, kinds:
	}
	return true
}

// gone is what the row takes from the order's level.
func gone(e *Row, volume int64) (taken, orders int64) {
	if e.Kind == Changed {
		return volume - e.Volume, 0
	}
	return volume, 1
}

// levelOps declares what happens to levels.
func (a *App) levelOps() (credit *txn.Op[Level, Resting, int64], debit *txn.Op[Level, Resting, Row]) {
	credit = txn.Upsert(a.Levels, "credit", func(c txn.Ctx, volume int64, l *Resting, _ bool) txn.Verdict {
		a.cost.Spend(c)
		l.Volume, l.Orders = l.Volume+volume, l.Orders+1
		return txn.OK
	})
	debit = txn.Update(a.Levels, "debit", func(c txn.Ctx, e Row, l *Resting) txn.Verdict {
		a.cost.Spend(c)
		before, _ := a.before.Get(c)
		taken, orders := gone(&e, before.Volume)
		l.Volume, l.Orders = l.Volume-taken, l.Orders-orders
		return txn.OK
	})
	return credit, debit
}

// trade declares what an execution leaves, which windows then add up.
func (a *App) trade() *txn.Op[Side, Execution, Row] {
	return txn.Upsert(a.Executions, "trade", func(c txn.Ctx, e Row, x *Execution, _ bool) txn.Verdict {
		a.cost.Spend(c)
		before, _ := a.before.Get(c)
		*x = executed(&e, before.Volume)
		return txn.OK
	})
}

// executed is the execution that leaves the row's volume of an order's.
func executed(e *Row, volume int64) Execution {
	return Execution{e.Old, volume - e.Volume, (volume - e.Volume) * e.Old}
}

// check verifies that there are as many orders as were entered and not removed,
// that each level is the sum of its orders, and that nothing is negative.
func (a *App) check(orders int) error {
	sums, n := map[Level]Resting{}, 0
	for id, o := range a.Orders.All() {
		n++
		if o.Volume < 0 || o.Seen.Value < 0 || o.Seen.Trades < 0 {
			return fmt.Errorf("order %d is %+v: nothing of it can be negative", id, o)
		}
		l := Level{o.Side, o.Price}
		sums[l] = Resting{sums[l].Volume + o.Volume, sums[l].Orders + 1}
	}
	if n != orders {
		return fmt.Errorf("%d orders are in the book; entered and not removed were %d", n, orders)
	}
	for l, r := range a.Levels.All() {
		if r != sums[l] {
			return fmt.Errorf("%s level at %d has %d in %d orders; its orders have %d in %d", l.Side, l.Price, r.Volume, r.Orders, sums[l].Volume, sums[l].Orders)
		}
		delete(sums, l)
	}
	if len(sums) > 0 {
		return fmt.Errorf("orders without a level: %v", sums)
	}
	for s, x := range a.Executions.All() {
		if x.Volume < 0 || x.Turnover < 0 {
			return fmt.Errorf("last execution of the %s side is %+v: nothing of it can be negative", s, x)
		}
	}
	return nil
}
