package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/txn"
)

// Local runs nodes in this process, each in a goroutine, and hands messages over as they are.
type Local struct {
	// New makes an instance of the application for a node. Several goroutines call it at once.
	New func() (*txn.App, error)
	// Engine is the options of each node's engine.
	Engine engine.Options
	// Keep, if set, is the job's: nodes send pieces of checkpoints there.
	Keep Keep
	// Dies, for tests of failures, reports whether a node dies before it sends a message. One goroutine of each node calls it.
	Dies func(from, to reconfig.Node, m Message) bool
	// LinkRate bounds the bytes of groups that a node sends per second. Default: no bound
	LinkRate float64

	box    *Mailbox
	mu     sync.Mutex
	boxes  map[reconfig.Node]*Mailbox
	links  []*Link
	nodes  sync.WaitGroup
	failed []error
}

// Box returns the mailbox of control.
func (l *Local) Box() *Mailbox {
	if l.box == nil {
		l.box, l.boxes = NewMailbox(), map[reconfig.Node]*Mailbox{}
	}
	return l.box
}

// Start implements [Runtime].
func (l *Local) Start(o Options) error {
	o.Engine = l.Engine
	box := NewMailbox()
	end := &localEnd{Local: l, node: o.Node}
	l.mu.Lock()
	l.boxes[o.Node] = box
	if l.LinkRate > 0 {
		end.link = NewLink(l.LinkRate, l.deliver)
		l.links = append(l.links, end.link)
	}
	l.mu.Unlock()
	l.nodes.Add(1)
	go func() {
		defer l.nodes.Done()
		if err := Host(context.Background(), l.New, o, end, box); err != nil {
			if end.last { // control waits for nothing of it
				l.mu.Lock()
				l.failed = append(l.failed, err)
				l.mu.Unlock()
			}
			l.box.Put(&Progress{From: o.Node, Err: err})
		}
		box.Close()
	}()
	return nil
}

// Send implements [Transport] for control.
func (l *Local) Send(to reconfig.Node, m Message) error { return l.deliver(to, m) }

func (l *Local) deliver(to reconfig.Node, m Message) error {
	if p, is := m.(*Piece); is && to == Archive {
		l.Keep.Store(p, func(err error) { l.stored(p, err) })
		return nil
	}
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

// stored tells a node that a piece of it is safe, or control why it is not.
func (l *Local) stored(p *Piece, err error) {
	if err != nil {
		l.box.Put(&Progress{From: Control, Err: err})
		return
	}
	_ = l.deliver(p.From, &Credit{Archive, p.Size()}) // it may have come to its end
}

// Close implements [Runtime].
func (l *Local) Close() error {
	failed := l.end()
	return errors.Join(failed...)
}

// Reset implements [Runtime].
func (l *Local) Reset() error {
	l.end()
	_, _ = l.box.Take(nil)
	return nil
}

// end ends all nodes, and returns how those failed that did.
func (l *Local) end() (failed []error) {
	l.mu.Lock()
	for _, box := range l.boxes {
		box.Close()
	}
	l.mu.Unlock()
	l.nodes.Wait()
	l.mu.Lock()
	links := l.links
	clear(l.boxes)
	l.links, failed, l.failed = nil, l.failed, nil
	l.mu.Unlock()
	for _, link := range links {
		_ = link.Close() // what a node still gets that has come to its end is nobody's loss
	}
	return failed
}

// localEnd is where a node sends.
type localEnd struct {
	*Local
	link *Link
	node reconfig.Node
	dead bool
	last bool // its last word was sent
}

var errDied = errors.New("the node died")

func (e *localEnd) Send(to reconfig.Node, m Message) error {
	if e.dead = e.dead || e.Dies != nil && e.Dies(e.node, to, m); e.dead {
		return errDied
	}
	if _, last := m.(*Final); last {
		e.last = true
	}
	if e.link != nil && Bulky(m) {
		e.link.Send(to, m)
		return nil
	}
	return e.deliver(to, m)
}
