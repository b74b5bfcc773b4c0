package source

import (
	"context"
	"io"
)

// pump reads a stream in a goroutine of its own, so that whoever waits for it can be
// interrupted. The goroutine ends with the stream, or with the first read after Close.
type pump struct {
	ctx    context.Context // of the read under way
	chunks chan chunk
	empty  chan []byte
	rest   []byte // of the chunk in hand
	whole  []byte
	err    error
	closed chan struct{}
}

type chunk struct {
	data []byte
	err  error
}

func newPump(r io.Reader) *pump {
	p := &pump{chunks: make(chan chunk), empty: make(chan []byte, 2), closed: make(chan struct{})}
	for range cap(p.empty) {
		p.empty <- make([]byte, 64<<10)
	}
	go func() {
		for buf := range p.empty {
			n, err := r.Read(buf[:cap(buf)])
			select {
			case p.chunks <- chunk{buf[:n], err}:
			case <-p.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// Read implements [io.Reader]. It ends with the error of the context.
func (p *pump) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		if p.whole != nil {
			p.empty <- p.whole
			p.whole = nil
		}
		var done <-chan struct{}
		if p.ctx != nil {
			done = p.ctx.Done()
		}
		select {
		case c := <-p.chunks:
			p.rest, p.whole, p.err = c.data, c.data, c.err
		case <-done:
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close implements [io.Closer]. Once.
func (p *pump) Close() error {
	close(p.closed)
	return nil
}
