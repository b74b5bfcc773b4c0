package stock

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/rng"
)

const (
	sampleRows  = 50_000
	sampleStart = 1_700_000_000_000 // ms
	sampleFirst = 1_000_000         // the id of the first order; those below were never created
	samplePrice = 23_600            // cents
	bookMin     = 100
	bookMax     = 2_000
)

// sample is a generated order flow as a file: reading it makes its rows. The
// draws stand in docs/workloads/stock.md.
type sample struct {
	r    *rng.RNG
	buf  bytes.Buffer
	left int
	now  int64
	next uint64
	mid  int64
	book []resting
}

// resting is an order of the book.
type resting struct {
	id            uint64
	price, volume int64
	side          Side
}

func newSample(seed uint64, rows int) *sample {
	s := &sample{r: rng.New(seed, 1), left: rows, now: sampleStart, next: sampleFirst, mid: samplePrice}
	s.buf.WriteString(strings.Join(columns, ",") + "\n")
	return s
}

// Read makes rows until they fill p.
func (s *sample) Read(p []byte) (int, error) {
	for s.buf.Len() < len(p) && s.left > 0 {
		s.left--
		s.row()
	}
	return s.buf.Read(p)
}

// row makes a row. One in eight has the time of the row before.
func (s *sample) row() {
	if s.r.IntN(8) > 0 {
		s.now += int64(1 + s.r.IntN(1000))
	}
	x := s.r.IntN(100)
	switch {
	case len(s.book) < bookMin || x < 47 && len(s.book) < bookMax:
		s.create()
	case x < 47:
		s.cancel()
	case x < 55:
		s.fill(true)
	case x < 60:
		s.fill(false)
	case x < 61:
		s.move()
	case x < 63:
		s.strange()
	default:
		s.cancel()
	}
}

func (s *sample) write(o resting, action string) {
	fmt.Fprintf(&s.buf, "%d,%d,%d,%d.%02d,%d,%s,%s\n",
		o.id, s.now, s.now/1000*1000, o.price/100, o.price%100, o.volume, action, o.side)
}

// create enters an order that is the likelier the nearer it is to the market.
func (s *sample) create() {
	away := int64(1 + min(s.r.IntN(300), s.r.IntN(300)))
	o := resting{s.next, s.mid - away, int64(1+s.r.IntN(1000)) * 1_000_000, Bid}
	if s.r.IntN(3) == 0 {
		o.side, o.price = Ask, s.mid+away
	}
	s.next++
	s.book = append(s.book, o)
	s.write(o, "created")
}

// cancel takes back any order.
func (s *sample) cancel() {
	i := s.r.IntN(len(s.book))
	s.write(s.book[i], "deleted")
	s.drop(i)
}

func (s *sample) drop(i int) {
	last := len(s.book) - 1
	s.book[i] = s.book[last]
	s.book = slices.Delete(s.book, last, last+1)
}

// best returns the order nearest to the market among eight.
func (s *sample) best() int {
	best := s.r.IntN(len(s.book))
	for range 7 {
		if i := s.r.IntN(len(s.book)); s.away(i) < s.away(best) {
			best = i
		}
	}
	return best
}

func (s *sample) away(i int) int64 { return max(s.book[i].price-s.mid, s.mid-s.book[i].price) }

// fill executes an order in part or as a whole; the market follows.
func (s *sample) fill(partly bool) {
	i := s.best()
	o := &s.book[i]
	step := int64(s.r.IntN(4))
	if o.side == Bid {
		step = -step
	}
	s.mid = min(max(s.mid+step, samplePrice/2), 2*samplePrice)
	if partly && o.volume > 1 {
		o.volume -= 1 + s.r.Int64N(o.volume-1)
		s.write(*o, "changed")
		return
	}
	o.volume = 0
	s.write(*o, "deleted")
	s.drop(i)
}

// move gives an order another price.
func (s *sample) move() {
	o := &s.book[s.best()]
	o.price += int64(1 + s.r.IntN(10))
	s.write(*o, "changed")
}

// strange tells of an order from before the start.
func (s *sample) strange() {
	o := resting{uint64(s.r.IntN(sampleFirst)), s.mid, int64(s.r.IntN(3)) * 1_000_000, Side(s.r.IntN(2))}
	s.write(o, []string{"deleted", "changed"}[s.r.IntN(2)])
}
