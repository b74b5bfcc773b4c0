package tpcc

import (
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Ordered is the outcome of a new order, all 0 when it was rolled back.
type Ordered struct {
	Done   bool
	Number uint32
	Pieces int64
	Cents  int64 // with discount and taxes
}

// Paid is the outcome of a payment.
type Paid struct{ Cents, Balance int64 }

// Delivered is the outcome of a delivery.
type Delivered struct {
	Orders uint32
	Cents  int64
}

// Status is the answer about a customer's last order.
type Status struct {
	Balance int64
	Carrier uint8
	Lines   Lines
}

// App is the declared application. Warehouses are numbered from 0, districts
// through all warehouses, and customers, items and orders from 1.
type App struct {
	App          *txn.App
	Warehouses   *txn.Table[uint32, int64] // taxes
	WarehouseYTD *txn.Table[uint32, int64]
	Districts    *txn.Table[uint32, District]
	DistrictYTD  *txn.Table[uint32, int64]
	Names        *txn.Table[uint64, uint32]
	Customers    *txn.Table[uint64, Customer]
	LastOrders   *txn.Table[uint64, uint32]
	Items        *txn.Table[uint32, int64] // prices
	Stock        *txn.Table[uint64, Stock]
	Orders       *txn.Table[uint64, Order]
	Lines        *txn.Table[uint64, Lines]
	NewOrders    *txn.Table[uint64, bool]
	Oldest       *txn.Table[uint32, uint32] // new order of a district
	History      *txn.Table[uint64, History]
	Levels       *txn.Table[uint32, int64] // last answer about a district's stock

	NewOrder    *txn.Event[NewOrder, Ordered]
	Payment     *txn.Event[Payment, Paid]
	Delivery    *txn.Event[Delivery, Delivered]
	OrderStatus *txn.Event[OrderStatus, Status]
	StockLevel  *txn.Event[StockLevel, int64]

	district *txn.Param[uint32, District] // as it was at the start
	named    *txn.Param[uint64, uint32]   // customer of a name
	price    *txn.Param[uint32, int64]    // of each line's item
}

// New declares the application. ytd says how the sums of the year are kept:
// "update" or "merge".
func New(s *state, cost program.Cost, ytd string) *App {
	app := txn.New("tpcc")
	a := &App{
		App:        app,
		Warehouses: table(app, "warehouses", s.warehouses), WarehouseYTD: table(app, "warehouse ytd", s.warehouseYTD),
		Districts: table(app, "districts", s.districts), DistrictYTD: table(app, "district ytd", s.districtYTD),
		Names: table(app, "names", s.names), Customers: table(app, "customers", s.customers),
		LastOrders: table(app, "last orders", s.lastOrders), Items: table(app, "items", s.items), Stock: table(app, "stock", s.stock),
		Orders: table(app, "orders", s.orders), Lines: table(app, "order lines", s.lines), NewOrders: table(app, "new orders", s.newOrders),
		Oldest: table(app, "oldest new orders", s.oldest), History: table(app, "history", s.history), Levels: table(app, "stock levels", s.levels),
	}
	a.district = txn.NewParam(a.Districts, "district at start")
	a.named = txn.NewParam(a.Names, "customer of a name")
	a.price = txn.NewParam(a.Items, "price")
	a.declareNewOrder(cost)
	a.declarePayment(cost, ytd)
	a.declareDelivery(cost)
	a.declareOrderStatus(cost)
	a.declareStockLevel(cost)
	return a
}

func table[K comparable, V any](app *txn.App, name string, rows map[K]V) *txn.Table[K, V] {
	t := txn.NewTable[K, V](app, name)
	for k, v := range rows {
		t.Load(k, v)
	}
	return t
}

// ordering is what the operations of a new order need of it.
type ordering struct {
	NewOrder
	local bool
}

// number is the number of an order, which is the district's next one.
func (a *App) number(c txn.Ctx) uint32 {
	d, _ := a.district.Get(c)
	return d.Next
}

func (a *App) orderKey(c txn.Ctx, e ordering) (uint64, txn.Verdict) {
	return key(e.District, a.number(c)), txn.OK
}

func (a *App) declareNewOrder(cost program.Cost) {
	enterOrder, enterLines, enterNew := a.declareEntries(cost)
	tax := look(a.Warehouses, "look at warehouse tax", cost)
	customer := look(a.Customers, "look at discount", cost)
	take := txn.Update(a.Districts, "take number", func(c txn.Ctx, _ uint8, d *District) txn.Verdict {
		cost.Spend(c)
		d.Next++
		return txn.OK
	})
	setLast := txn.Upsert(a.LastOrders, "set last order", func(c txn.Ctx, _ uint8, last *uint32, _ bool) txn.Verdict {
		cost.Spend(c)
		*last = a.number(c)
		return txn.OK
	})
	type piece struct {
		quantity int64
		remote   bool
	}
	// An item that nobody knows has no stock: the lines, which come last, tell.
	sell := txn.Update(a.Stock, "take from stock", func(c txn.Ctx, p piece, s *Stock) txn.Verdict {
		cost.Spend(c)
		s.take(p.quantity, p.remote)
		return txn.OK
	}).Lenient()
	a.NewOrder = txn.On(a.App, "new order", func(p *txn.Plan, e NewOrder) {
		start := a.district.AtStart(p, e.District)
		o := ordering{NewOrder: e, local: true}
		tax.At(p, e.District/districts, 0)
		take.At(p, e.District, 0)
		customer.At(p, key(e.District, e.Customer), 0)
		for _, l := range e.Lines {
			remote := l.Warehouse != e.District/districts
			o.local = o.local && !remote
			sell.At(p, key(l.Warehouse, l.Item), piece{l.Quantity, remote})
		}
		enterOrder.Then(p, o, start)
		enterNew.Then(p, o, start)
		setLast.At(p, key(e.District, e.Customer), 0, start)
		var reads [1 + linesMax]txn.Arg
		reads[0] = start
		for i, l := range e.Lines {
			reads[1+i] = a.price.Of(p, l.Item)
		}
		enterLines.Then(p, o, reads[:1+len(e.Lines)]...)
	}, func(out txn.Outcome, e NewOrder) Ordered {
		if !out.Committed() {
			return Ordered{}
		}
		w, _ := tax.Before(out)
		d, _ := take.Before(out)
		c, _ := customer.Before(out)
		lines, _ := enterLines.After(out)
		pieces := int64(0)
		for _, l := range e.Lines {
			pieces += l.Quantity
		}
		return Ordered{true, d.Next, pieces, total(lines.cents(), c.Discount, w, d.Tax)}
	})
}

// look declares an operation that looks at a row that has to be there.
func look[K comparable, V any](t *txn.Table[K, V], name string, cost program.Cost) *txn.Op[K, V, uint8] {
	return txn.Get(t, name, func(c txn.Ctx, _ uint8, _ V, found bool) txn.Verdict {
		cost.Spend(c)
		if !found {
			return txn.Missing
		}
		return txn.OK
	})
}

// declareEntries declares the rows that a new order makes under its number.
func (a *App) declareEntries(cost program.Cost) (order *txn.LateOp[uint64, Order, ordering], lines *txn.LateOp[uint64, Lines, ordering], isNew *txn.LateOp[uint64, bool, ordering]) {
	unknown := a.App.Reason("unknown item")
	order = txn.Late(txn.Insert(a.Orders, "enter order", func(c txn.Ctx, e ordering, o *Order) txn.Verdict {
		cost.Spend(c)
		*o = Order{Customer: e.Customer, Lines: uint8(len(e.Lines)), Local: e.local, Entered: e.Time}
		return txn.OK
	}), a.orderKey)
	lines = txn.Late(txn.Insert(a.Lines, "enter lines", func(c txn.Ctx, e ordering, l *Lines) txn.Verdict {
		cost.Spend(c)
		for cents, found := range a.price.All(c) {
			if !found {
				return unknown
			}
			r := &e.Lines[l.N]
			l.Line[l.N] = Line{r.Item, r.Warehouse, r.Quantity, r.Quantity * cents}
			l.N++
		}
		return txn.OK
	}), a.orderKey)
	isNew = txn.Late(txn.Insert(a.NewOrders, "enter new order", func(c txn.Ctx, _ ordering, isNew *bool) txn.Verdict {
		cost.Spend(c)
		*isNew = true
		return txn.OK
	}), a.orderKey)
	return order, lines, isNew
}
