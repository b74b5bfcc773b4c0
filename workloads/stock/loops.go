package stock

import "github.com/heddle-stream/heddle/program"

// book is the state of the serial program. Its windows are lists, which are
// shortened and added up at each row.
type book struct {
	window     int64
	cost       program.Cost
	orders     map[uint64]Order
	levels     map[Level]Resting
	executions map[Side]Execution
	past       [2][]past
}

// past is an execution at a time.
type past struct {
	time int64
	Execution
}

func newBook(window int, cost program.Cost) *book {
	return &book{
		window: int64(window), cost: cost,
		orders: map[uint64]Order{}, levels: map[Level]Resting{}, executions: map[Side]Execution{},
	}
}

// loops are serial programs over the same events.
func (f *flow) loops(window int, cost program.Cost) []program.Loop {
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		b := newBook(window, cost)
		return func() { b.run(f.rows) }
	}}}
}

func (b *book) run(rows []Row) {
	for i := range rows {
		if e := &rows[i]; e.Kind == Created {
			b.enter(e)
		} else {
			b.settle(e)
		}
	}
}

// turnover adds up the executions in the window before a row.
func (b *book) turnover(e *Row) (t Turnover) {
	recent := b.past[e.Side]
	for len(recent) > 0 && recent[0].time < e.Time-b.window {
		recent = recent[1:]
	}
	b.past[e.Side] = recent
	for i := range recent {
		t.Value += recent[i].Turnover
		if recent[i].Volume > 0 {
			t.Trades++
		}
	}
	return t
}

func (b *book) enter(e *Row) {
	b.cost.SpendTimes(1)
	if _, ok := b.orders[e.ID]; ok {
		return
	}
	b.orders[e.ID] = Order{e.Price, e.Volume, b.turnover(e), e.Side}
	b.credit(e)
}

func (b *book) credit(e *Row) {
	b.cost.SpendTimes(1)
	l := Level{e.Side, e.Price}
	b.levels[l] = Resting{b.levels[l].Volume + e.Volume, b.levels[l].Orders + 1}
}

func (b *book) settle(e *Row) {
	b.cost.SpendTimes(1)
	o, ok := b.orders[e.ID]
	if !ok || o.Side != e.Side || o.Price != e.Old || !fits(e, o.Volume) {
		return
	}
	b.cost.SpendTimes(1)
	taken, orders := gone(e, o.Volume)
	l := Level{e.Side, e.Old}
	b.levels[l] = Resting{b.levels[l].Volume - taken, b.levels[l].Orders - orders}
	seen := b.turnover(e)
	if e.Kind == Moved {
		b.credit(e)
	}
	if e.Kind == Changed || e.Kind == Executed {
		b.cost.SpendTimes(1)
		x := executed(e, o.Volume)
		b.executions[e.Side] = x
		b.past[e.Side] = append(b.past[e.Side], past{e.Time, x})
	}
	if e.Kind == Executed || e.Kind == Cancelled {
		b.cost.SpendTimes(1)
		delete(b.orders, e.ID)
		return
	}
	price := o.Price
	if e.Kind == Moved {
		price = e.Price
	}
	b.orders[e.ID] = Order{price, e.Volume, seen, e.Side}
}
