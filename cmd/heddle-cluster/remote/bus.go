package remote

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
)

// bus is the connection of a node, or of control, to the others.
type bus struct {
	conn *nats.Conn
	job  string
	self reconfig.Node
	link *cluster.Link // for what is large
	name string        // of the job among others that keep something on the server, "" if this one does not
	js   jetstream.JetStream
	box  *cluster.Mailbox

	mu   sync.Mutex
	sent map[sending]uint64
	part uint64 // of a checkpoint, of which pieces were stored last
	next uint64 // the number of its next frame
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
	b.box = box
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

// keepsAs has pieces of checkpoints go where a job of a name keeps them.
func (b *bus) keepsAs(name string) (err error) {
	b.name = name
	b.js, err = jetstream.New(b.conn)
	return err
}

// store keeps a piece of a checkpoint.
func (b *bus) store(p *cluster.Piece) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.part != p.Part {
		b.part, b.next = p.Part, 0
	}
	b.next, err = store(b.js, b.name, b.next, p, func(err error) {
		if err != nil {
			_ = b.Send(cluster.Control, &cluster.Progress{From: b.self, Err: fmt.Errorf("storing rows: %w", err)}) // the connection is told of by others
			return
		}
		b.box.Put(&cluster.Credit{From: cluster.Archive, Bytes: p.Size()})
	})
	return err
}

// publish sends a message in frames.
func (b *bus) publish(to reconfig.Node, m cluster.Message, bulk bool) error {
	if p, is := m.(*cluster.Piece); is && to == cluster.Archive {
		return b.store(p)
	}
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
