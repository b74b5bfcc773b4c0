package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

// What a message in byte form begins with.
const (
	tagSection = iota
	tagLoans
	tagImage
	tagCopyRows
	tagCredit
	tagResults
	tagProgress
	tagFinish
	tagFinal
	tagStarted
	tagJoin
	tagPiece
)

// AppendMessage adds the byte form of a message to dst: a byte that says what it is, and its fields in their order.
// Numbers are varints, bytes and lists have their length before them.
func AppendMessage(dst []byte, m Message) []byte {
	w := writer(dst)
	switch m := m.(type) {
	case *Section:
		w = append(w, tagSection)
		w.numbers(m.Batch, uint64(m.Router), m.Version, uint64(m.Count))
		w.moves(m.Moves)
		w.settings(&m.Settings)
		w.numbers(bit(m.Settle), m.Save, bit(m.SaveAll), uint64(len(m.Orders)))
		for _, o := range m.Orders {
			w.numbers(uint64(o.Kind), uint64(o.Group), node(o.From), node(o.To))
		}
		w.bytes(m.Actions)
	case *Loans:
		w = append(w, tagLoans)
		w.numbers(node(m.From), uint64(len(m.Loans)))
		for i := range m.Loans {
			l := &m.Loans[i]
			w.numbers(l.Seq, bit(l.Home))
			w.row(&l.Row)
		}
	case *Image:
		w = append(w, tagImage)
		w.numbers(node(m.From), uint64(m.Group), m.Version, m.Order, m.Copied)
		w.rows(m.Rows)
		w.numbers(m.Sum.Hi, m.Sum.Lo)
	case *CopyRows:
		w = append(w, tagCopyRows)
		w.numbers(node(m.From), uint64(m.Group), m.Order, bit(m.Whole))
		w.rows(m.Rows)
	case *Credit:
		w = append(w, tagCredit)
		w.numbers(node(m.From), uint64(m.Bytes))
	case *Results:
		w = append(w, tagResults)
		w.numbers(node(m.From), uint64(len(m.Results)))
		for i := range m.Results {
			w.numbers(m.Results[i].Seq, bit(m.Results[i].Committed))
			w.bytes(m.Results[i].Bytes)
		}
	case *Progress:
		w = append(w, tagProgress)
		w.progress(m)
	case *Finish:
		w = append(w, tagFinish)
	case *Final:
		w = append(w, tagFinal)
		w.numbers(node(m.From), m.Hash.Hi, m.Hash.Lo)
	case *Started:
		w = append(w, tagStarted)
		w.numbers(node(m.From))
		w.failure(m.Err)
	case *Join:
		w = append(w, tagJoin)
		w.join(m)
	case *Piece:
		w = append(w, tagPiece)
		w.numbers(node(m.From), m.Part, uint64(len(m.Whole)))
		for _, g := range m.Whole {
			w.numbers(uint64(g))
		}
		w.rows(m.Rows)
	default:
		panic(fmt.Sprintf("a %T has no byte form", m))
	}
	return w
}

// node is a node's number, and 0 for nobody.
func node(n reconfig.Node) uint64 { return uint64(n + 1) }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// writer adds fields to a message.
type writer []byte

func (w *writer) numbers(all ...uint64) {
	for _, n := range all {
		*w = binary.AppendUvarint(*w, n)
	}
}

func (w *writer) bytes(b []byte) { *w = appendBytes(*w, b) }

// row adds a row; one that is none has no bytes, and no row that is one has none.
func (w *writer) row(r *Row) {
	w.numbers(uint64(r.Table))
	w.bytes(r.Key)
	w.numbers(bit(r.Row != nil))
	if r.Row != nil {
		w.bytes(r.Row)
	}
}

func (w *writer) rows(rows []Row) {
	w.numbers(uint64(len(rows)))
	for i := range rows {
		w.row(&rows[i])
	}
}

func (w *writer) progress(m *Progress) {
	w.numbers(node(m.From), m.Taken, m.Done, uint64(m.Held), uint64(m.Moved), uint64(len(m.Arrived)))
	for _, a := range m.Arrived {
		w.numbers(uint64(a.Group), a.Version, uint64(a.Nanos))
	}
	w.numbers(uint64(len(m.Sizes)))
	for _, s := range m.Sizes {
		w.numbers(uint64(s.Group), uint64(s.Rows), uint64(s.Bytes))
	}
	w.numbers(m.Saved, uint64(m.Bytes), uint64(len(m.Copied)))
	for _, g := range m.Copied {
		w.numbers(uint64(g))
	}
	w.failure(m.Err)
}

func (w *writer) moves(moves []reconfig.Move) {
	w.numbers(uint64(len(moves)))
	for _, v := range moves {
		w.numbers(uint64(v.Group), node(v.From), node(v.To))
	}
}

func (w *writer) settings(s *reconfig.Settings) {
	w.bytes([]byte(s.Strategy))
	w.numbers(uint64(s.Workers), uint64(len(s.Logic)))
	for _, name := range slices.Sorted(maps.Keys(s.Logic)) {
		w.bytes([]byte(name))
		w.bytes([]byte(s.Logic[name]))
	}
}

func (w *writer) join(m *Join) {
	w.numbers(m.Batch, m.Owners.Version(), uint64(m.Owners.Groups()))
	for g := range m.Owners.Groups() {
		w.numbers(node(m.Owners.Of(reconfig.Group(g))))
	}
	w.settings(&m.Settings)
	w.numbers(bit(m.Saves), bit(m.Restore))
}

// failure adds the text of an error, or nothing.
func (w *writer) failure(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	w.bytes([]byte(text))
}

// ErrMessage tells of bytes that are no message.
var ErrMessage = errors.New("bytes that are no message")

// DecodeMessage reads a message that is all of src, and refers to it.
func DecodeMessage(src []byte) (m Message, err error) {
	if len(src) == 0 {
		return nil, ErrMessage
	}
	r := &reader{src: src[1:]}
	switch src[0] {
	case tagSection:
		m = r.section()
	case tagLoans:
		l := &Loans{From: r.node()}
		for range r.count(4) {
			l.Loans = append(l.Loans, Loan{r.uint64(), r.bit(), r.row()})
		}
		m = l
	case tagImage:
		m = &Image{r.node(), r.group(), r.uint64(), r.uint64(), r.uint64(), r.rows(), storage.Hash{Hi: r.uint64(), Lo: r.uint64()}}
	case tagCopyRows:
		m = &CopyRows{r.node(), r.group(), r.uint64(), r.bit(), r.rows()}
	case tagCredit:
		m = &Credit{r.node(), int64(r.number())}
	case tagResults:
		x := &Results{From: r.node()}
		for range r.count(3) {
			x.Results = append(x.Results, Result{r.uint64(), r.bit(), r.bytes()})
		}
		m = x
	case tagProgress:
		m = r.progress()
	case tagFinish:
		m = &Finish{}
	case tagFinal:
		m = &Final{r.node(), storage.Hash{Hi: r.uint64(), Lo: r.uint64()}}
	case tagStarted:
		m = &Started{r.node(), r.failure()}
	case tagJoin:
		m = r.join()
	case tagPiece:
		p := &Piece{From: r.node(), Part: r.uint64()}
		for range r.count(1) {
			p.Whole = append(p.Whole, r.group())
		}
		p.Rows = r.rows()
		m = p
	default:
		return nil, ErrMessage
	}
	if r.err != nil || len(r.src) > 0 {
		return nil, ErrMessage
	}
	return m, nil
}

func (r *reader) section() *Section {
	s := &Section{Batch: r.uint64(), Router: r.number(), Version: r.uint64(), Count: r.number()}
	s.Moves = r.moves()
	s.Settings = r.settings()
	s.Settle, s.Save, s.SaveAll = r.bit(), r.uint64(), r.bit()
	for range r.count(4) {
		s.Orders = append(s.Orders, Order{r.kind(), r.group(), r.node(), r.node()})
	}
	s.Actions = r.bytes()
	return s
}

func (r *reader) progress() *Progress {
	p := &Progress{From: r.node(), Taken: r.uint64(), Done: r.uint64(), Held: r.number(), Moved: int64(r.number())}
	for range r.count(3) {
		p.Arrived = append(p.Arrived, Arrival{r.group(), r.uint64(), int64(r.number())})
	}
	for range r.count(3) {
		p.Sizes = append(p.Sizes, Size{r.group(), r.number(), int64(r.number())})
	}
	p.Saved, p.Bytes = r.uint64(), int64(r.number())
	for range r.count(1) {
		p.Copied = append(p.Copied, r.group())
	}
	p.Err = r.failure()
	return p
}

func (r *reader) failure() error {
	if text := r.bytes(); len(text) > 0 {
		return errors.New(string(text))
	}
	return nil
}

func (r *reader) join() *Join {
	j := &Join{Batch: r.uint64()}
	version := r.uint64()
	var of []reconfig.Node
	for range r.count(1) {
		of = append(of, r.node())
	}
	if r.err == nil {
		j.Owners, r.err = reconfig.OwnersOf(version, of)
	}
	j.Settings, j.Saves, j.Restore = r.settings(), r.bit(), r.bit()
	return j
}

func (r *reader) moves() (moves []reconfig.Move) {
	for range r.count(3) {
		moves = append(moves, reconfig.Move{Group: r.group(), From: r.node(), To: r.node()})
	}
	return moves
}

func (r *reader) settings() (s reconfig.Settings) {
	s.Strategy, s.Workers = string(r.bytes()), r.number()
	for range r.count(2) {
		if s.Logic == nil {
			s.Logic = map[string]string{}
		}
		name := string(r.bytes())
		s.Logic[name] = string(r.bytes())
	}
	return s
}

// uint64 reads a number of any size.
func (r *reader) uint64() uint64 {
	n, size := binary.Uvarint(r.src)
	if size <= 0 {
		r.err, r.src = ErrMessage, nil
		return 0
	}
	r.src = r.src[size:]
	return n
}

// count reads how many items follow, each of which takes so many bytes at least.
func (r *reader) count(size int) int {
	n := r.number()
	if n > len(r.src)/size {
		r.err, r.src = ErrMessage, nil
		return 0
	}
	return n
}

func (r *reader) node() reconfig.Node {
	n := r.number()
	if n > 1<<30 {
		r.err = ErrMessage
		return reconfig.Nobody
	}
	return reconfig.Node(n) - 1
}

func (r *reader) group() reconfig.Group {
	n := r.number()
	if n >= reconfig.GroupsMax {
		r.err = ErrMessage
		return 0
	}
	return reconfig.Group(n)
}

func (r *reader) kind() OrderKind {
	n := r.number()
	if n > int(Release) {
		r.err = ErrMessage
	}
	return OrderKind(n)
}

func (r *reader) bit() bool {
	n := r.number()
	if n > 1 {
		r.err = ErrMessage
	}
	return n == 1
}

func (r *reader) row() Row {
	row := Row{Table: r.number(), Key: r.bytes()}
	if r.bit() {
		if row.Row = r.bytes(); row.Row == nil {
			row.Row = []byte{}
		}
	}
	return row
}

func (r *reader) rows() (rows []Row) {
	for range r.count(3) {
		rows = append(rows, r.row())
	}
	return rows
}
