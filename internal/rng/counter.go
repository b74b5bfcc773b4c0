package rng

import (
	"math"
	"math/bits"
)

// Counter draws the numbers that belong to one item of a seeded sequence, so that items
// can be made in any order and by anybody: what item n draws depends on the seed and n
// alone. It is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), begun at a mix of both.
type Counter struct{ state uint64 }

// Of returns the draws of item n.
func Of(seed, n uint64) Counter { return Counter{Mix(seed ^ Mix(n+0x9e3779b97f4a7c15))} }

// Mix maps 64 bits to 64 others, one to one; each bit depends on all.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Uint64 draws 64 bits.
func (c *Counter) Uint64() uint64 {
	c.state += 0x9e3779b97f4a7c15
	return Mix(c.state)
}

// Below draws from 0 to n-1. The bias is below n in 2^64.
func (c *Counter) Below(n int64) int64 {
	hi, _ := bits.Mul64(c.Uint64(), uint64(n))
	return int64(hi)
}

// Float64 draws from [0, 1).
func (c *Counter) Float64() float64 { return float64(c.Uint64()>>11) / (1 << 53) }

// Pareto draws from a distribution with a heavy tail: at least 1, above x with probability
// x to the power of minus shape.
func (c *Counter) Pareto(shape float64) float64 { return math.Pow(1-c.Float64(), -1/shape) }
