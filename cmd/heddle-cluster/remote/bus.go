package remote

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
)

// bus is the connection of a node, or of control, to the others.
type bus struct {
	conn *nats.Conn
	job  string
	self reconfig.Node
	link *cluster.Link // for what is large

	mu   sync.Mutex
	sent map[sending]uint64
	buf  []byte
}

type sending struct {
	to   reconfig.Node
	bulk bool
}

// connect connects to a server. Fail is called once when the connection is lost.
func connect(url, token, job string, self reconfig.Node, rate float64, fail func(error)) (*bus, error) {
	conn, err := nats.Connect(url, nats.Token(token), nats.NoReconnect(), nats.Name(fmt.Sprintf("heddle %s %d", job, self)),
		nats.ClosedHandler(func(c *nats.Conn) {
			if err := c.LastError(); err != nil {
				fail(fmt.Errorf("connection to the NATS server: %w", err))
			} else {
				fail(nil)
			}
		}))
	if err != nil {
		return nil, fmt.Errorf("NATS server %s: %w", url, err)
	}
	b := &bus{conn: conn, job: job, self: self, sent: map[sending]uint64{}}
	b.link = cluster.NewLink(rate, func(to reconfig.Node, m cluster.Message) error { return b.publish(to, m, true) })
	return b, nil
}

func subject(job string, to reconfig.Node) string {
	if to == cluster.Control {
		return "heddle." + job + ".control"
	}
	return fmt.Sprintf("heddle.%s.%d", job, to)
}

// receive has what is sent to us put into a mailbox.
func (b *bus) receive(box *cluster.Mailbox, fail func(error)) error {
	var frames assembler
	s, err := b.conn.Subscribe(subject(b.job, b.self), func(msg *nats.Msg) {
		m, err := frames.take(msg.Data)
		if err != nil {
			fail(err)
		} else if m != nil {
			box.Put(m)
		}
	})
	if err != nil {
		return err
	}
	if err := s.SetPendingLimits(-1, -1); err != nil { // bounds are set by who sends
		return err
	}
	return b.conn.Flush()
}

// Send implements [cluster.Transport].
func (b *bus) Send(to reconfig.Node, m cluster.Message) error {
	if cluster.Bulky(m) {
		b.link.Send(to, m)
		return nil
	}
	return b.publish(to, m, false)
}

// publish sends a message in frames.
func (b *bus) publish(to reconfig.Node, m cluster.Message, bulk bool) error {
	src := cluster.AppendMessage(nil, m)
	b.mu.Lock()
	defer b.mu.Unlock()
	key, w := sending{to, bulk}, way{b.self, bulk}
	for {
		part := src[:min(len(src), frameMax)]
		src = src[len(part):]
		b.buf = appendFrame(b.buf[:0], w, b.sent[key], len(src) == 0, part)
		b.sent[key]++
		if err := b.conn.Publish(subject(b.job, to), b.buf); err != nil {
			return err
		}
		if len(src) == 0 {
			return nil
		}
	}
}

// close sends what is left and ends the connection.
func (b *bus) close() error {
	err := b.link.Close()
	if ferr := b.conn.Flush(); err == nil {
		err = ferr
	}
	b.conn.Close()
	return err
}
