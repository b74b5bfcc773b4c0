package remote

import (
	"bytes"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
)

// frames returns a message in frames of so many bytes.
func frames(m cluster.Message, w way, number uint64, size int) (out [][]byte) {
	src := cluster.AppendMessage(nil, m)
	for {
		part := src[:min(len(src), size)]
		src = src[len(part):]
		out = append(out, appendFrame(nil, w, number, len(src) == 0, part))
		number++
		if len(src) == 0 {
			return out
		}
	}
}

// I11: frames that come twice change nothing, and one that is missing, or is not as it was sent, is an error.
func TestFrames(t *testing.T) {
	rows := &cluster.CopyRows{From: 3, Group: 7, Rows: []cluster.Row{{Key: []byte("key"), Row: bytes.Repeat([]byte("value "), 100)}}}
	slow, fast := way{3, true}, way{3, false}
	all := frames(rows, slow, 0, 50)
	if len(all) < 5 {
		t.Fatalf("%d frames", len(all))
	}
	var a assembler
	came := 0
	for i, f := range all {
		for range 2 {
			m, err := a.take(f)
			if err != nil || m != nil && i < len(all)-1 {
				t.Fatalf("frame %d: %v, %v", i, m, err)
			}
			if m != nil {
				came++
				if got := m.(*cluster.CopyRows); !bytes.Equal(got.Rows[0].Row, rows.Rows[0].Row) {
					t.Error("another message came of the frames")
				}
			}
		}
		// What is small goes between.
		if m, err := a.take(frames(&cluster.Credit{From: 3, Bytes: int64(i)}, fast, uint64(i), 50)[0]); err != nil || m.(*cluster.Credit).Bytes != int64(i) {
			t.Fatalf("between: %v, %v", m, err)
		}
	}
	if came != 1 {
		t.Errorf("the message came %d times", came)
	}
	next := uint64(len(all))
	if _, err := a.take(frames(rows, slow, next+1, 5000)[0]); err == nil {
		t.Error("a lost frame is not noticed")
	}
	bad := frames(rows, slow, next, 5000)[0]
	for i := range bad {
		bad[i] ^= 1
		if _, err := a.take(bad); err == nil {
			t.Fatalf("byte %d may change", i)
		}
		if _, err := a.take(bad[:i]); err == nil {
			t.Fatalf("the first %d bytes are a frame", i)
		}
		bad[i] ^= 1
	}
	if m, err := a.take(bad); err != nil || m == nil {
		t.Errorf("after all that: %v, %v", m, err)
	}
}
