package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// Local runs nodes in this process, each in a goroutine, and hands messages over as they are.
type Local struct {
	// New makes an instance of the application for a node.
	New func() (*txn.App, error)
	// Engine is the options of each node's engine.
	Engine engine.Options
	// LinkRate bounds the bytes of groups that a node sends per second, as the link of a machine would. Default: no
	// bound
	LinkRate float64

	box    *Mailbox
	mu     sync.Mutex
	boxes  map[reconfig.Node]*Mailbox
	bulk   map[reconfig.Node]*Mailbox // what a node sends on its link
	nodes  sync.WaitGroup
	links  sync.WaitGroup
	failed []error
}

// Box returns the mailbox of control.
func (l *Local) Box() *Mailbox {
	if l.box == nil {
		l.box = NewMailbox()
		l.boxes, l.bulk = map[reconfig.Node]*Mailbox{}, map[reconfig.Node]*Mailbox{}
	}
	return l.box
}

// Start implements [Runtime].
func (l *Local) Start(o Options) error {
	app, err := l.New()
	if err != nil {
		return err
	}
	o.Engine = l.Engine
	n, err := NewNode(app, o, &localEnd{l, o.Node})
	if err != nil {
		return err
	}
	box := NewMailbox()
	l.mu.Lock()
	l.boxes[o.Node] = box
	if l.LinkRate > 0 {
		l.bulk[o.Node] = NewMailbox()
		l.links.Add(1)
		go l.link(l.bulk[o.Node])
	}
	l.mu.Unlock()
	l.nodes.Add(1)
	go func() {
		defer l.nodes.Done()
		if err := Serve(context.Background(), n, box); err != nil {
			l.mu.Lock()
			l.failed = append(l.failed, err)
			l.mu.Unlock()
		}
		box.Close()
	}()
	return nil
}

// Send implements [Transport] for control.
func (l *Local) Send(to reconfig.Node, m Message) error { return l.deliver(to, m) }

func (l *Local) deliver(to reconfig.Node, m Message) error {
	box := l.box
	if to != Control {
		l.mu.Lock()
		box = l.boxes[to]
		l.mu.Unlock()
	}
	if box == nil {
		return fmt.Errorf("a %T for node %d, which is not there", m, to)
	}
	box.Put(m)
	return nil
}

// Wait implements [Runtime].
func (l *Local) Wait() error {
	l.nodes.Wait()
	l.mu.Lock()
	for _, b := range l.bulk {
		b.Close()
	}
	l.mu.Unlock()
	l.links.Wait()
	return errors.Join(l.failed...)
}

// localEnd is where a node sends.
type localEnd struct {
	*Local
	node reconfig.Node
}

// parcel is a message on a link.
type parcel struct {
	to reconfig.Node
	at int64 // when it was sent
	Message
}

func (e *localEnd) Send(to reconfig.Node, m Message) error {
	if e.LinkRate > 0 && weight(m) > 0 {
		e.mu.Lock()
		link := e.bulk[e.node]
		e.mu.Unlock()
		link.Put(&parcel{to, clock.NowNanos(), m})
		return nil
	}
	return e.deliver(to, m)
}

// weight returns the bytes of a message that takes long on a link.
func weight(m Message) (bytes int64) {
	switch m := m.(type) {
	case *Image:
		for i := range m.Rows {
			bytes += m.Rows[i].bytes()
		}
		return bytes + 1
	case *CopyRows:
		return m.bytes() + 1
	}
	return 0
}

// link delivers parcels, each when its last byte would have come.
func (l *Local) link(box *Mailbox) {
	defer l.links.Done()
	free := clock.NowNanos() // when the link has nothing to do
	var all []Message
	for {
		var open bool
		all, open = box.Take(all[:0])
		for i, m := range all {
			all[i] = nil
			p := m.(*parcel)
			free = max(free, p.at) + int64(float64(weight(p.Message))/l.LinkRate*1e9)
			if wait := free - clock.NowNanos(); wait > 0 {
				<-clock.System{}.After(time.Duration(wait))
			}
			_ = l.deliver(p.to, p.Message) // nobody waits for what a node gets that has come to its end
		}
		if !open {
			return
		}
		if len(all) == 0 {
			<-box.Bell()
		}
	}
}
