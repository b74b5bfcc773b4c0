package tpcc

import (
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:   "tpcc",
	About:  "TPC-C: orders, payments, deliveries and questions at warehouses",
	Events: 50_000,
	Params: []program.Param{
		{Name: "warehouses", Kind: program.Int, Default: "2", Min: 1, Max: 1000, Usage: "warehouses, of ten districts each"},
		{Name: "customers", Kind: program.Int, Default: "300", Min: 10, Max: 3000, Usage: "customers of a district, with an order each; the standard has 3000"},
		{Name: "items", Kind: program.Int, Default: "10000", Min: 20, Max: 100_000, Usage: "items; the standard has 100000"},
		{Name: "remote-lines", Kind: program.Float, Default: "1", Min: 0, Max: 100, Usage: "lines of new orders from another warehouse, in percent"},
		{Name: "remote-payments", Kind: program.Float, Default: "15", Min: 0, Max: 100, Usage: "payments of customers of another warehouse, in percent"},
		{Name: "rollback", Kind: program.Float, Default: "1", Min: 0, Max: 100, Usage: "new orders of an unknown item, in percent"},
		{Name: "ytd", Kind: program.Text, Default: "merge", OneOf: []string{"merge", "update"}, Usage: "how payments add to the sums of warehouse and district"},
		program.Complexity,
	},
	New: newInstance,
}

func newInstance(c *program.Config) (*program.Instance, error) {
	a := New(newState(c), c.Cost("complexity"), c.Text("ytd"))
	g, told := newGenerator(c), &sums{}
	a.tell(told)
	return &program.Instance{
		App:    a.App,
		Total:  c.Events,
		Source: program.Generated(c.Events, func(f *txn.Feed) { a.push(f, g.next()) }),
		Check:  func() error { return a.check(g.size, told) },
		Loops:  loops(c),
	}, nil
}

func (a *App) push(f *txn.Feed, e event) {
	switch e.kind {
	case NewOrderKind:
		a.NewOrder.Push(f, e.order)
	case PaymentKind:
		a.Payment.Push(f, e.payment)
	case DeliveryKind:
		a.Delivery.Push(f, e.delivery)
	case OrderStatusKind:
		a.OrderStatus.Push(f, e.status)
	default:
		a.StockLevel.Push(f, e.level)
	}
}
