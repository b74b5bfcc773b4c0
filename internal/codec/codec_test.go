package codec

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type inner struct {
	Name string
	Qty  int16
}

type plain struct {
	Flag  bool
	A     int8
	B     uint32
	C     int64
	F     float64
	G     float32
	S     string
	Bytes [3]byte
	Lines []inner
	U     [4]uint64
	Raw   []byte
}

func genPlain(t *rapid.T) plain {
	return plain{
		Flag: rapid.Bool().Draw(t, "flag"), A: rapid.Int8().Draw(t, "a"), B: rapid.Uint32().Draw(t, "b"),
		C: rapid.Int64().Draw(t, "c"), F: rapid.Float64().Draw(t, "f"), G: rapid.Float32().Draw(t, "g"),
		S: rapid.String().Draw(t, "s"), Bytes: [3]byte{rapid.Byte().Draw(t, "x")},
		Lines: rapid.SliceOf(rapid.Custom(func(t *rapid.T) inner {
			return inner{rapid.String().Draw(t, "name"), rapid.Int16().Draw(t, "qty")}
		})).Draw(t, "lines"),
		U: [4]uint64{rapid.Uint64().Draw(t, "u")}, Raw: rapid.SliceOf(rapid.Byte()).Draw(t, "raw"),
	}
}

func TestRoundTrip(t *testing.T) {
	c, err := Derive[plain]()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := genPlain(t)
		enc := c.Append([]byte("head"), &want)
		var got plain
		rest, err := c.Decode(append(enc[4:], 7), &got)
		if err != nil || !bytes.Equal(rest, []byte{7}) {
			t.Fatalf("decode: %v, rest %v", err, rest)
		}
		if len(want.Lines) == 0 {
			want.Lines, got.Lines = nil, nil
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		for cut := range len(enc) - 4 {
			if _, err := c.Decode(enc[4:4+cut], &got); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("a cut at %d of %d was accepted: %v", cut, len(enc)-4, err)
			}
		}
	})
}

func TestDeriveNamesTheBadPart(t *testing.T) {
	type bad struct{ In struct{ M map[string]int } }
	_, err := Derive[bad]()
	if err == nil || !strings.Contains(err.Error(), "codec.bad.In.M is a map") {
		t.Fatalf("got %v", err)
	}
}

func TestDecodeRejectsOutOfRange(t *testing.T) {
	c, _ := Derive[int8]()
	big, _ := Derive[int64]()
	v := int64(math.MaxInt8 + 1)
	var out int8
	if _, err := c.Decode(big.Append(nil, &v), &out); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("128 fits into int8: %v", err)
	}
	if _, err := c.Decode([]byte{0x80, 0x00}, &out); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("an overlong varint was accepted: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	c, err := Derive[plain]()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.Append(nil, &plain{S: "x", Lines: []inner{{"a", 1}}}))
	f.Fuzz(func(t *testing.T, src []byte) {
		var v plain
		rest, err := c.Decode(src, &v)
		if err != nil {
			return
		}
		if used := src[:len(src)-len(rest)]; !bytes.Equal(c.Append(nil, &v), used) {
			t.Fatalf("two encodings of one value: %x", used)
		}
	})
}
