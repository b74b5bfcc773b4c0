package u256_test

import (
	"encoding/binary"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/internal/u256"
)

var modulus = new(big.Int).Lsh(big.NewInt(1), 256)

// draw returns a number of any size, as math/big has it and parsed from its text.
func draw(t *rapid.T, name string) (*big.Int, u256.Int) {
	bytes := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 0xff})), 0, 32).Draw(t, name)
	want := new(big.Int).SetBytes(bytes)
	got, err := u256.Parse(want.String())
	if err != nil {
		t.Fatalf("Parse(%s): %v", want, err)
	}
	return want, got
}

func TestAgainstMathBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, a := draw(t, "a")
		y, b := draw(t, "b")
		if a.String() != x.String() {
			t.Fatalf("String: %s, want %s", a, x)
		}
		sum, over := a.Add(b)
		want := new(big.Int).Add(x, y)
		if over != (want.Cmp(modulus) >= 0) || sum.String() != want.Mod(want, modulus).String() {
			t.Fatalf("%s + %s = %s, %v", a, b, sum, over)
		}
		diff, under := a.Sub(b)
		want.Sub(x, y)
		if under != (want.Sign() < 0) || diff.String() != want.Mod(want, modulus).String() {
			t.Fatalf("%s - %s = %s, %v", a, b, diff, under)
		}
		if a.Cmp(b) != x.Cmp(y) || a.IsZero() != (x.Sign() == 0) || (a == b) != (x.Cmp(y) == 0) {
			t.Fatalf("Cmp(%s, %s) = %d", a, b, a.Cmp(b))
		}
	})
}

func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		x, y := new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)
		if u256.Of(a).String() != x.String() {
			t.Fatalf("Of(%d) = %s", a, u256.Of(a))
		}
		if got := u256.Mul(a, b); got.String() != x.Mul(x, y).String() {
			t.Fatalf("%d * %d = %s", a, b, got)
		}
	})
}

func TestParseRejects(t *testing.T) {
	tooLarge := modulus.String()
	for _, s := range []string{"", "00", "01", "-1", "+1", " 1", "1 ", "1e3", "0x1", "1.0", "١", tooLarge, "9" + tooLarge, "1" + tooLarge[1:] + "0"} {
		if n, err := u256.Parse(s); err == nil {
			t.Errorf("Parse(%q) = %s, want an error", s, n)
		}
	}
	largest := new(big.Int).Sub(modulus, big.NewInt(1)).String()
	if n, err := u256.Parse(largest); err != nil || n.String() != largest {
		t.Errorf("Parse(2^256-1) = %s, %v", n, err)
	}
}

// FuzzParse: what is accepted is what math/big reads, and is written the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "1", "10000000000000000000", "340282366920938463463374607431768211456", "x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := u256.Parse(s)
		if err != nil {
			return
		}
		want, ok := new(big.Int).SetString(s, 10)
		if !ok || want.String() != s || n.String() != s {
			t.Fatalf("Parse(%q) = %s", s, n)
		}
	})
}

func TestHasDerivedCodec(t *testing.T) {
	c, err := codec.Derive[u256.Int]()
	if err != nil {
		t.Fatal(err)
	}
	in := u256.Mul(binary.BigEndian.Uint64([]byte("codecbit")), 1<<63)
	var out u256.Int
	if rest, err := c.Decode(c.Append(nil, &in), &out); err != nil || len(rest) > 0 || out != in {
		t.Fatalf("decoded %s, want %s (%v, %d bytes left)", out, in, err, len(rest))
	}
}
