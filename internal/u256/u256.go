// Package u256 has unsigned integers of 256 bits as plain values: comparable,
// copied by assignment, and without memory of their own, so that they can be
// values of a table. Operations tell when the result does not fit.
package u256

import (
	"errors"
	"math/bits"
)

// Int is an unsigned integer. Its zero value is 0.
type Int struct {
	limbs [4]uint64 // the lowest first
}

// Of returns n as an Int.
func Of(n uint64) Int { return Int{[4]uint64{n}} }

// Mul returns the product of two words, which always fits.
func Mul(a, b uint64) Int {
	hi, lo := bits.Mul64(a, b)
	return Int{[4]uint64{lo, hi}}
}

// Add returns a+b modulo 2^256 and whether the sum is larger than that.
func (a Int) Add(b Int) (sum Int, overflow bool) {
	var carry uint64
	for i := range a.limbs {
		sum.limbs[i], carry = bits.Add64(a.limbs[i], b.limbs[i], carry)
	}
	return sum, carry != 0
}

// Sub returns a-b modulo 2^256 and whether b is larger than a.
func (a Int) Sub(b Int) (difference Int, underflow bool) {
	var borrow uint64
	for i := range a.limbs {
		difference.limbs[i], borrow = bits.Sub64(a.limbs[i], b.limbs[i], borrow)
	}
	return difference, borrow != 0
}

// Cmp returns -1, 0 or 1 for a less than, equal to or greater than b.
func (a Int) Cmp(b Int) int {
	for i := 3; i >= 0; i-- {
		switch {
		case a.limbs[i] < b.limbs[i]:
			return -1
		case a.limbs[i] > b.limbs[i]:
			return 1
		}
	}
	return 0
}

// IsZero reports whether a is 0.
func (a Int) IsZero() bool { return a == Int{} }

// Decimals are read and written in groups of as many digits as a word holds.
const (
	groupDigits = 19
	groupSize   = 10_000_000_000_000_000_000
	maxDigits   = 78 // of 2^256-1
)

// ErrDecimal tells of a text that is not a decimal integer of at most 256 bits
// without sign and leading zeros.
var ErrDecimal = errors.New("not a decimal integer below 2^256")

// Parse reads a decimal integer. There is one text for each value: signs, blanks
// and leading zeros are errors.
func Parse(s string) (Int, error) {
	if s == "" || len(s) > maxDigits || s[0] == '0' && len(s) > 1 {
		return Int{}, ErrDecimal
	}
	var n Int
	for len(s) > 0 {
		size := (len(s)-1)%groupDigits + 1
		group, scale := uint64(0), uint64(1)
		for _, c := range []byte(s[:size]) {
			if c < '0' || c > '9' {
				return Int{}, ErrDecimal
			}
			group, scale = group*10+uint64(c-'0'), scale*10
		}
		if !n.scaleAdd(scale, group) {
			return Int{}, ErrDecimal
		}
		s = s[size:]
	}
	return n, nil
}

// scaleAdd sets n to n*scale+add and reports whether that fits.
func (a *Int) scaleAdd(scale, add uint64) bool {
	for i := range a.limbs {
		hi, lo := bits.Mul64(a.limbs[i], scale)
		var carry uint64
		a.limbs[i], carry = bits.Add64(lo, add, 0)
		add = hi + carry // cannot overflow: hi is at most 2^64-2
	}
	return add == 0
}

// String returns the decimal text.
func (a Int) String() string {
	var buf [maxDigits + groupDigits]byte
	at := len(buf)
	for {
		group := a.divide(groupSize)
		last := a.IsZero()
		for digits := 0; group > 0 || !last && digits < groupDigits; digits++ {
			at--
			buf[at] = byte('0' + group%10)
			group /= 10
		}
		if last {
			break
		}
	}
	if at == len(buf) {
		return "0"
	}
	return string(buf[at:])
}

// divide sets a to a/by and returns the remainder.
func (a *Int) divide(by uint64) (remainder uint64) {
	for i := 3; i >= 0; i-- {
		a.limbs[i], remainder = bits.Div64(remainder, a.limbs[i], by)
	}
	return remainder
}
