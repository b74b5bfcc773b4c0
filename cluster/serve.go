package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/heddle-stream/heddle/txn"
)

// Host makes a node, tells control that it is there, and serves it. What fails before that is told in the
// same message, so that a job goes on without the node.
func Host(ctx context.Context, instance func() (*txn.App, error), o Options, out Transport, box *Mailbox) error {
	app, err := instance()
	var n *Node
	if err == nil {
		n, err = NewNode(app, o, out)
	}
	if sent := out.Send(Control, &Started{o.Node, err}); err != nil || sent != nil {
		return sent
	}
	return Serve(ctx, n, box)
}

// Serve has a node handle the messages of a mailbox until it is told to finish, the mailbox is closed, the context is
// cancelled or something fails, which it tells control. It closes the node.
func Serve(ctx context.Context, n *Node, box *Mailbox) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("node %d panicked: %v\n%s", n.id, v, debug.Stack())
			_ = n.out.Send(Control, &Progress{From: n.id, Err: err}) // nobody is left to tell of a failure to tell
		}
		_, closed := n.Close()
		err = errors.Join(err, closed)
	}()
	var all []Message
	for {
		var open bool
		all, open = box.Take(all[:0])
		for i, m := range all {
			all[i] = nil
			if _, last := m.(*Finish); last {
				hash, err := n.Hash()
				if err != nil {
					return err
				}
				return n.out.Send(Control, &Final{n.id, hash})
			}
			if err := n.Handle(m); err != nil {
				return err
			}
		}
		more, err := n.Work()
		if err != nil {
			return err
		}
		if !open {
			return nil
		}
		if more || len(all) > 0 {
			continue
		}
		select {
		case <-box.Bell():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
