package remote

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
)

// frameMax is the most bytes of a message in a frame: NATS takes 1 MiB.
const frameMax = 256 << 10

// way is one of the two ways from a sender to a receiver.
type way struct {
	from reconfig.Node
	bulk bool
}

// appendFrame adds a frame: sender, way, number and whether it is the last one of a message, then the bytes, then a
// checksum of all of that.
func appendFrame(dst []byte, w way, number uint64, last bool, part []byte) []byte {
	flags := byte(0)
	if w.bulk {
		flags |= 1
	}
	if last {
		flags |= 2
	}
	dst = binary.AppendVarint(append(dst, flags), int64(w.from))
	dst = append(binary.AppendUvarint(dst, number), part...)
	return binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst))
}

var errFrame = errors.New("bytes that are no frame, or not as they were sent")

// parseFrame reads a frame.
func parseFrame(src []byte) (w way, number uint64, last bool, part []byte, err error) {
	if len(src) < 8+3 || binary.LittleEndian.Uint64(src[len(src)-8:]) != xxh3.Hash(src[:len(src)-8]) || src[0] > 3 {
		return w, 0, false, nil, errFrame
	}
	flags, rest := src[0], src[1:len(src)-8]
	from, size := binary.Varint(rest)
	if size <= 0 {
		return w, 0, false, nil, errFrame
	}
	number, n := binary.Uvarint(rest[size:])
	if n <= 0 {
		return w, 0, false, nil, errFrame
	}
	return way{reconfig.Node(from), flags&1 != 0}, number, flags&2 != 0, rest[size+n:], nil
}

// assembler makes messages of frames. One goroutine uses it.
type assembler struct {
	ways map[way]*arriving
}

type arriving struct {
	next uint64
	buf  []byte
}

// take takes a frame and returns the message that it completes, if it does. Frames that came before are passed over.
func (a *assembler) take(src []byte) (cluster.Message, error) {
	w, number, last, part, err := parseFrame(src)
	if err != nil {
		return nil, err
	}
	if a.ways == nil {
		a.ways = map[way]*arriving{}
	}
	x := a.ways[w]
	if x == nil {
		x = &arriving{}
		a.ways[w] = x
	}
	switch {
	case number < x.next:
		return nil, nil
	case number > x.next:
		return nil, fmt.Errorf("of the messages from node %d, %d to %d are lost", w.from, x.next, number-1)
	}
	x.next++
	x.buf = append(x.buf, part...)
	if !last {
		return nil, nil
	}
	buf := x.buf
	x.buf = nil // the message refers to it
	return cluster.DecodeMessage(buf)
}
