package metamorphic

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/txn"
)

// Kind of a listed operation.
type Kind uint8

// The kinds. Those above NumSafe may panic.
const (
	Get    Kind = iota // abort if the value is above the argument
	Add                // add the argument and the reads; abort below zero
	Put                // set to the argument plus the reads, making the key
	Make               // insert
	Remove             // delete
	MakeOr             // insert, lenient
	DropOr             // delete, lenient
	SumOf              // set to the sum of a range of the ordered table
	Note               // put into the table that windows look at
	Forget             // delete from it, lenient
	Recent             // set to what the windows on one of its keys show
	Late               // add to, put, get or remove the key that the reads add up to
	Bump               // merge the argument plus the reads; abort if that is too high
	NumSafe
	Divide // divide by the sum of the reads
	Strict // panic if the value is negative or the sum of the reads is odd
	NumKinds
)

// Op is one operation: on key Key of table Table (0, 1 plain, 2 ordered).
type Op struct {
	Kind  Kind
	Table uint8
	Key   int16
	Arg   int64
	Reads []Read
	Lo    int16
	Hi    int16
	Span  int16 // computed keys are below
}

// Read is a read of another key.
type Read struct {
	Table uint8
	Key   int16
	Start bool
	Chase bool // read the key that the value of this one gives
}

// Event is a transaction as a list of operations, at a time.
type Event struct {
	Time int64
	Ops  []Op
}

// Result is everything that a result function can learn.
type Result struct {
	Committed bool
	Why       string
	Before    []int64
	After     []int64
}

// List is the application.
type List struct {
	App    *txn.App
	Events *txn.Event[Event, Result]

	tables  [3]*txn.Table[int16, int64]
	params  [3]*txn.Param[int16, int64]
	ranges  *txn.Range[int16, int64]
	watched *watched
	ops     [NumKinds][3]*txn.Op[int16, int64, Op]
	lates   [NumKinds][3]*txn.LateOp[int16, int64, Op]
	chases  [3]*txn.LateParam[int16, int64, int16]
	bumps   [3]*txn.MergeOp[int16, int64, Op, int64]
}

// New declares the application. Keys below loaded hold their own number at the start.
func New(loaded int) *List {
	l := NewUnwatched(loaded)
	l.watched = newWatched(l.App)
	return l
}

// NewUnwatched declares the application without windows, for events of a shape
// without them.
func NewUnwatched(loaded int) *List {
	l := &List{App: txn.New("list")}
	ordered := txn.NewOrdered[int16, int64](l.App, "ordered")
	l.tables = [3]*txn.Table[int16, int64]{
		txn.NewTable[int16, int64](l.App, "left"), txn.NewTable[int16, int64](l.App, "right"), ordered.Table,
	}
	l.ranges = txn.NewRange(ordered, "interval")
	high, low := l.App.Reason("too high"), l.App.Reason("below zero")
	for i, t := range l.tables {
		l.params[i] = txn.NewParam(t, "read "+t.Name())
		for k := range loaded {
			t.Load(int16(k), int64(k))
		}
		l.declare(i, t, high, low)
		l.declareFresh(i, t, high, low)
		l.declareLate(i, t, high)
	}
	l.Events = txn.On(l.App, "list", l.plan, l.result, txn.EventTime[Event, Result](func(e Event) int64 { return e.Time }))
	return l
}

func (l *List) declare(i int, t *txn.Table[int16, int64], high, low txn.Verdict) {
	name := func(what string) string { return what + " " + t.Name() }
	l.ops[Get][i] = txn.Get(t, name("get"), func(c txn.Ctx, o Op, v int64, _ bool) txn.Verdict {
		if v+l.sum(c, o) > o.Arg {
			return high
		}
		return txn.OK
	})
	l.ops[Add][i] = txn.Update(t, name("add"), func(c txn.Ctx, o Op, v *int64) txn.Verdict {
		*v += o.Arg + l.sum(c, o)
		if *v < 0 {
			return low
		}
		return txn.OK
	})
	l.ops[Put][i] = txn.Upsert(t, name("put"), func(c txn.Ctx, o Op, v *int64, found bool) txn.Verdict {
		if found {
			*v /= 2
		}
		*v += o.Arg + l.sum(c, o)
		return txn.OK
	})
	l.ops[Make][i] = txn.Insert(t, name("make"), func(c txn.Ctx, o Op, v *int64) txn.Verdict {
		*v = o.Arg + l.sum(c, o)
		return txn.OK
	})
	l.ops[Remove][i] = txn.Delete(t, name("remove"), func(c txn.Ctx, o Op, v int64) txn.Verdict {
		if v+l.sum(c, o) > o.Arg+20 {
			return high
		}
		return txn.OK
	})
	l.ops[MakeOr][i] = txn.Insert(t, name("make or leave"), func(_ txn.Ctx, o Op, v *int64) txn.Verdict {
		*v = o.Arg
		return txn.OK
	}).Lenient()
	l.ops[DropOr][i] = txn.Delete(t, name("drop if there"), func(txn.Ctx, Op, int64) txn.Verdict { return txn.OK }).Lenient()
	l.ops[SumOf][i] = txn.Upsert(t, name("sum of"), func(c txn.Ctx, o Op, v *int64, _ bool) txn.Verdict {
		*v = 0
		for k, x := range l.ranges.All(c) {
			*v = *v*3 + x + int64(k)
		}
		if *v %= 1000; *v > o.Arg+500 {
			return high
		}
		return txn.OK
	})
	l.ops[Divide][i] = txn.Upsert(t, name("divide"), func(c txn.Ctx, o Op, v *int64, _ bool) txn.Verdict {
		*v = 100 / (l.sum(c, o) + *v)
		return txn.OK
	})
	l.ops[Strict][i] = txn.Update(t, name("strict"), func(c txn.Ctx, o Op, v *int64) txn.Verdict {
		if s := l.sum(c, o); *v < 0 || s%2 != 0 {
			panic(fmt.Sprintf("value %d, reads %d", *v, s))
		}
		*v += 2 * o.Arg
		return txn.OK
	})
}

// declareFresh declares what looks at windows, and what looks at nothing.
func (l *List) declareFresh(i int, t *txn.Table[int16, int64], high, low txn.Verdict) {
	name := func(what string) string { return what + " " + t.Name() }
	l.ops[Recent][i] = txn.Upsert(t, name("recent"), func(c txn.Ctx, o Op, v *int64, _ bool) txn.Verdict {
		if *v = (l.watched.look(c) + o.Arg) % 1000; *v < -700 {
			return low
		}
		return txn.OK
	})
	l.bumps[i] = txn.Merge(t, name("bump"), func(c txn.Ctx, o Op) (int64, txn.Verdict) {
		delta := o.Arg + l.sum(c, o)
		if delta > 60 {
			return 0, high
		}
		return delta, txn.OK
	}, func(v *int64, delta int64) { *v += delta })
}

// lateKinds are the operations that a computed key is drawn for.
var lateKinds = [...]Kind{Add, Put, Get, Remove}

func (l *List) declareLate(i int, t *txn.Table[int16, int64], high txn.Verdict) {
	for _, kind := range lateKinds {
		l.lates[kind][i] = txn.Late(l.ops[kind][i], func(c txn.Ctx, o Op) (int16, txn.Verdict) {
			s := l.sum(c, o) + o.Arg
			if s%11 == 5 {
				return 0, high
			}
			return wrap(s, o.Span), txn.OK
		})
	}
	l.chases[i] = txn.NewLateParam(t, "chase "+t.Name(), func(c txn.Ctx, span int16) (int16, bool) {
		v, found := l.params[i].Get(c)
		return wrap(v, span), found && v%5 != 3
	})
}

func wrap(v int64, span int16) int16 { return int16(((v % int64(span)) + int64(span)) % int64(span)) }

// lateKind is the operation that a Late one stands for.
func (o *Op) lateKind() Kind { return lateKinds[uint16(o.Arg)%uint16(len(lateKinds))] }

// sum adds up the values of the operation's reads, an absent one as -1.
func (l *List) sum(c txn.Ctx, o Op) int64 {
	total := int64(0)
	var has, chases [3]bool
	for _, r := range o.Reads {
		if r.Chase {
			chases[r.Table] = true
		} else {
			has[r.Table] = true
		}
	}
	add := func(v int64, found bool) bool {
		if !found {
			v = -1
		}
		total += v
		return true
	}
	for i := range l.params {
		if has[i] {
			l.params[i].All(c)(add)
		}
		if chases[i] {
			l.chases[i].All(c)(add)
		}
	}
	return total % 1000
}

func (l *List) plan(p *txn.Plan, e Event) {
	shared := map[Read]txn.Arg{} // operations that read a key at the start share the read
	for _, o := range e.Ops {
		var args []txn.Arg
		for _, r := range o.Reads {
			arg, made := shared[r]
			switch {
			case r.Chase:
				read := l.params[r.Table].Of
				if r.Key%2 == 0 {
					read = l.params[r.Table].AtStart
				}
				arg = l.chases[r.Table].Then(p, o.Span, read(p, r.Key))
			case !r.Start:
				arg = l.params[r.Table].Of(p, r.Key)
			case !made:
				arg = l.params[r.Table].AtStart(p, r.Key)
				shared[r] = arg
			}
			args = append(args, arg)
		}
		if o.Kind == SumOf {
			args = append(args, l.ranges.Of(p, o.Lo, o.Hi))
		}
		switch o.Kind {
		case Note:
			l.watched.note.At(p, o.Key, o, args...)
			continue
		case Forget:
			l.watched.forget.At(p, o.Key, o, args...)
			continue
		case Recent:
			args = append(args, l.watched.reads(p, o.Lo)...)
		}
		if o.Kind == Bump {
			l.bumps[o.Table].At(p, o.Key, o, args...)
			continue
		}
		if o.Kind == Late {
			l.lates[o.lateKind()][o.Table].Then(p, o, args...)
			continue
		}
		l.ops[o.Kind][o.Table].At(p, o.Key, o, args...)
	}
}

func (l *List) result(out txn.Outcome, e Event) Result {
	r := Result{Committed: out.Committed(), Why: out.Reason()}
	for _, o := range e.Ops {
		if o.Kind == Note || o.Kind == Forget {
			if v, ok := l.watched.note.After(out); ok {
				r.After = append(r.After, v)
			}
			continue
		}
		if o.Kind == Bump {
			if delta, ok := l.bumps[o.Table].Delta(out); ok {
				r.After = append(r.After, delta)
			}
			continue
		}
		if o.Kind == Late {
			l.lateResult(&r, l.lates[o.lateKind()][o.Table], out)
			continue
		}
		op := l.ops[o.Kind][o.Table]
		if v, ok := op.Before(out); ok {
			r.Before = append(r.Before, v)
		}
		for arg, v := range op.All(out) {
			r.After = append(r.After, arg.Arg, v)
		}
		if v, ok := op.After(out); ok {
			r.After = append(r.After, v)
		}
	}
	return r
}

func (l *List) lateResult(r *Result, op *txn.LateOp[int16, int64, Op], out txn.Outcome) {
	if key, ok := op.Key(out); ok {
		r.Before = append(r.Before, int64(key))
	}
	if v, ok := op.Before(out); ok {
		r.Before = append(r.Before, v)
	}
	for arg, v := range op.All(out) {
		r.After = append(r.After, arg.Arg, v)
	}
}

// Shape bounds what Draw draws.
type Shape struct {
	Keys   int // per table
	OpsMax int // per transaction
	Kinds  Kind
	Tables int // 1 to 3
	Panics bool
	NoLate bool // no computed keys
	// No windows; and besides none of intervals, computed keys and commutative operations.
	NoWindows, Plain bool
}

// Draw makes random events.
func Draw(r *rng.RNG, n int, s Shape) []Event {
	kinds := int(NumSafe)
	if s.Panics {
		kinds = int(NumKinds)
	}
	out := make([]Event, n)
	now := int64(0)
	for i := range out {
		now += int64(r.IntN(3))
		out[i].Time = now
		for range r.IntN(s.OpsMax + 1) {
			out[i].Ops = append(out[i].Ops, drawOp(r, kinds, s))
		}
	}
	return out
}

func drawOp(r *rng.RNG, kinds int, s Shape) Op {
	o := Op{
		Kind: Kind(r.IntN(kinds)), Table: uint8(r.IntN(s.Tables)), Key: int16(r.IntN(s.Keys)),
		Arg: int64(r.IntN(60) - 20), Span: int16(s.Keys + 2),
	}
	s.NoLate = s.NoLate || s.Plain
	if !s.allows(o.Kind) {
		o.Kind = Add
	}
	if o.Kind == NumSafe {
		o.Kind = Strict
	}
	for range r.IntN(3) {
		o.Reads = append(o.Reads, Read{uint8(r.IntN(s.Tables)), int16(r.IntN(s.Keys)), r.IntN(2) == 0, false})
		if last := &o.Reads[len(o.Reads)-1]; !last.Start && !s.NoLate && r.IntN(4) == 0 {
			last.Chase = true
		}
	}
	if o.Kind == SumOf || o.Kind == Recent {
		o.Lo = int16(r.IntN(s.Keys))
		o.Hi = o.Lo + int16(r.IntN(s.Keys/2+2))
	}
	return o
}

// allows reports whether the events of the shape may have operations of the kind.
func (s *Shape) allows(k Kind) bool {
	switch k {
	case Late:
		return !s.NoLate
	case Note, Forget, Recent:
		return !s.NoWindows && !s.Plain
	case SumOf, Bump:
		return !s.Plain
	}
	return true
}

// Seeds returns how many seeds a test should try: what HEDDLE_SEEDS says, or n.
func Seeds(n int) int {
	if s, err := strconv.Atoi(os.Getenv("HEDDLE_SEEDS")); err == nil && s > 0 {
		return s
	}
	return n
}

// Text prints events, an event a line, for the report of a failure.
func Text(events []Event) string {
	var b strings.Builder
	for i, e := range events {
		fmt.Fprintf(&b, "%d: %+v\n", i, e.Ops)
	}
	return b.String()
}
