package cluster

import (
	"encoding/binary"
	"errors"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

// Control is the address of who routes events and gets results.
const Control = reconfig.Nobody

// Transport carries messages. Those from one sender to one receiver come in the order in which
// they were sent. What is sent belongs to the receiver.
type Transport interface {
	Send(to reconfig.Node, m Message) error
}

// Message is what nodes and control send to each other: one of the types below.
type Message interface{ message() }

// Section is what a router has for a node in one batch.
type Section struct {
	Batch   uint64
	Router  int
	Version uint64 // of the table of owners that holds for the batch
	Change         // that comes before the batch, the same for all nodes and from all routers
	Count   int    // actions
	Actions []byte // see appendRun and appendLend
}

// Change is what changes at a punctuation.
type Change struct {
	Moves    []reconfig.Move // that make the table of owners of the one before
	Orders   []Order
	Settings reconfig.Settings // that are others from now on
	// Settle makes each node take up the batch when nothing of those before it is under way there any more.
	Settle bool
	// Save makes each node save its rows as this part of a checkpoint, as they are before the batch and its other
	// changes: those that changed since the last one, or all.
	Save    uint64
	SaveAll bool
}

// due reports whether there is anything to tell nodes.
func (c *Change) due() bool {
	return len(c.Moves)+len(c.Orders) > 0 || c.Settle || !c.Settings.IsZero()
}

// OrderKind says what an order is for.
type OrderKind byte

// The kinds of orders.
const (
	// Survey has the owner of a group find its rows, so that it can go without a look at all others.
	Survey OrderKind = iota
	// Copy has the owner of a group send its rows to another node and, from then on, what changes of them.
	Copy
	// Release ends both.
	Release
)

// Order is about a group that stays where it is.
type Order struct {
	Kind  OrderKind
	Group reconfig.Group
	From  reconfig.Node // its owner
	To    reconfig.Node // who gets a copy
}

// Row is a row in byte form.
type Row struct {
	Table int
	Key   []byte
	Row   []byte // key and value; nil: there is none
}

func (r *Row) bytes() int64 { return int64(len(r.Key) + len(r.Row)) }

// Loans are rows that go to where a transaction runs, or home again.
type Loans struct {
	From  reconfig.Node
	Loans []Loan
}

// Loan is one of them.
type Loan struct {
	Seq  uint64 // of the transaction
	Home bool   // it comes home
	Row
}

// Image is a group on its way to its new owner.
type Image struct {
	From    reconfig.Node
	Group   reconfig.Group
	Version uint64 // of the table of owners by which it goes
	// Order is that of the copy to which Rows are the rest, which has so many rows; 0: Rows are all.
	Order  uint64
	Copied uint64
	Rows   []Row
	// Sum is the hash of all rows of the group, in checked builds.
	Sum storage.Hash
}

// CopyRows are rows of a group of which another node keeps a copy. The newest of a key holds.
type CopyRows struct {
	From  reconfig.Node
	Group reconfig.Group
	Order uint64 // the batch with which the copy began
	Whole bool   // all rows were sent once
	Rows  []Row
}

// Credit tells who sends copies that so many bytes have come.
type Credit struct {
	From  reconfig.Node
	Bytes int64
}

// Results are transactions that came to an end at a node.
type Results struct {
	From    reconfig.Node
	Results []Result
}

// Result is what became of a transaction.
type Result struct {
	Seq       uint64
	Committed bool
	Bytes     []byte // of its result
}

// Progress tells control how far a node is.
type Progress struct {
	From    reconfig.Node
	Taken   uint64 // batches before this one are taken up
	Done    uint64 // and of those before this one nothing waits
	Held    int    // transactions that wait
	Arrived []Arrival
	Sizes   []Size           // of groups that were surveyed since the last time
	Copied  []reconfig.Group // of which the node has a copy since the last time
	Saved   uint64           // the part of a checkpoint that is safe since the last time, and its bytes
	Bytes   int64
	Moved   int64 // bytes of images and copies that came, so far
	Err     error // why the node is at its end
}

// Arrival is a group that came to its new owner.
type Arrival struct {
	Group   reconfig.Group
	Version uint64 // of the table of owners by which it came
	Nanos   int64  // from the punctuation until it was there, by the new owner's clock
}

// Size is what a group has.
type Size struct {
	Group reconfig.Group
	Rows  int
	Bytes int64
}

// Started tells control that a node is there, or why it is not.
type Started struct {
	From reconfig.Node
	Err  error
}

// Join is the first message of control to a node: with which batch it begins, and what holds then.
type Join struct {
	Batch    uint64
	Owners   *reconfig.Owners
	Settings reconfig.Settings
	Saves    bool // the node is going to save its rows, now and then
	Restore  bool // its rows come from control
}

// Finish tells a node that nothing will come any more.
type Finish struct{}

// Final is a node's last word: the hash of what it owns.
type Final struct {
	From reconfig.Node
	Hash storage.Hash
}

func (*Started) message()  {}
func (*Join) message()     {}
func (*Finish) message()   {}
func (*Final) message()    {}
func (*Section) message()  {}
func (*Loans) message()    {}
func (*Image) message()    {}
func (*CopyRows) message() {}
func (*Credit) message()   {}
func (*Results) message()  {}
func (*Progress) message() {}

const (
	actRun byte = iota
	actLend
)

// appendRun adds that a transaction is to be executed: its number, what the node has to borrow for it, and the event.
func appendRun(dst []byte, seq uint64, typ int, event []byte, guests []guest) []byte {
	dst = binary.AppendUvarint(append(dst, actRun), seq)
	dst = binary.AppendUvarint(dst, uint64(len(guests)))
	for _, g := range guests {
		dst = binary.AppendUvarint(dst, uint64(g.home))
		dst = binary.AppendUvarint(dst, uint64(g.table))
		dst = appendBytes(dst, g.key)
	}
	return appendBytes(binary.AppendUvarint(dst, uint64(typ)), event)
}

// appendLend adds that a row is to be lent for a transaction to where it runs.
func appendLend(dst []byte, seq uint64, table int, key []byte, to reconfig.Node) []byte {
	dst = binary.AppendUvarint(append(dst, actLend), seq)
	dst = binary.AppendUvarint(dst, uint64(to))
	return appendBytes(binary.AppendUvarint(dst, uint64(table)), key)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// guest is a row of another node that a transaction needs.
type guest struct {
	home  reconfig.Node
	table int
	key   []byte
}

var errAction = errors.New("an action that cannot be read")

// reader takes numbers and bytes off the front of encoded actions.
type reader struct {
	src []byte
	err error
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.src)
	if size <= 0 || n > 1<<62 {
		r.err, r.src = errAction, nil
		return 0
	}
	r.src = r.src[size:]
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.number()
	if n > len(r.src) {
		r.err, r.src = errAction, nil
		return nil
	}
	b := r.src[:n:n]
	r.src = r.src[n:]
	return b
}

// action reads the next one.
func (r *reader) action(a *action) error {
	if len(r.src) == 0 || r.src[0] > actLend {
		return errAction
	}
	a.lend = r.src[0] == actLend
	r.src = r.src[1:]
	a.seq = uint64(r.number())
	if a.lend {
		a.to = reconfig.Node(r.number())
		a.table = r.number()
		a.key = r.bytes()
		return r.err
	}
	a.guests = a.guests[:0]
	for range r.number() {
		g := guest{home: reconfig.Node(r.number()), table: r.number(), key: r.bytes()}
		if r.err != nil {
			return r.err
		}
		a.guests = append(a.guests, g)
	}
	a.typ = r.number()
	a.event = r.bytes()
	return r.err
}
