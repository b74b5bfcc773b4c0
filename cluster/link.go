package cluster

import (
	"time"

	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/reconfig"
)

// Link carries what is large, beside the other messages of a node and in the order in which it was sent, no faster
// than so many bytes per second, as the link of a machine would.
type Link struct {
	rate    float64
	deliver func(to reconfig.Node, m Message) error
	box     *Mailbox
	done    chan struct{}
	err     error
}

// parcel is a message on a link.
type parcel struct {
	to reconfig.Node
	at int64 // when it was sent
	Message
}

// NewLink returns a link; a rate of 0 is no bound.
func NewLink(rate float64, deliver func(to reconfig.Node, m Message) error) *Link {
	l := &Link{rate: rate, deliver: deliver, box: NewMailbox(), done: make(chan struct{})}
	go l.run()
	return l
}

// Bulky reports whether a message is one for links.
func Bulky(m Message) bool { return weight(m) > 0 }

// Send puts a message on the link.
func (l *Link) Send(to reconfig.Node, m Message) { l.box.Put(&parcel{to, clock.NowNanos(), m}) }

// Close ends the link and returns the first error of what was delivered.
func (l *Link) Close() error {
	l.box.Close()
	<-l.done
	return l.err
}

// weight returns the bytes of a message that takes long on a link, and 0 for others.
func weight(m Message) (bytes int64) {
	switch m := m.(type) {
	case *Image:
		for i := range m.Rows {
			bytes += m.Rows[i].bytes()
		}
		return bytes + 1
	case *CopyRows:
		return m.bytes() + 1
	case *Piece:
		return m.Size() + 1
	}
	return 0
}

// run delivers parcels, each when its last byte would have come.
func (l *Link) run() {
	defer close(l.done)
	free := clock.NowNanos() // when the link has nothing to do
	var all []Message
	for {
		var open bool
		all, open = l.box.Take(all[:0])
		for i, m := range all {
			all[i] = nil
			p := m.(*parcel)
			if l.rate > 0 {
				free = max(free, p.at) + int64(float64(weight(p.Message))/l.rate*1e9)
			}
			if wait := free - clock.NowNanos(); wait > 0 {
				<-clock.System{}.After(time.Duration(wait))
			}
			if err := l.deliver(p.to, p.Message); err != nil && l.err == nil {
				l.err = err
			}
		}
		if !open {
			return
		}
		if len(all) == 0 {
			<-l.box.Bell()
		}
	}
}
