// Package rng is the only source of randomness: seeded, reproducible on every
// machine, and cheap enough for workload generators.
//
// One integer seed determines every draw. The generator is PCG (O'Neill 2014)
// as shipped in math/rand/v2; Zipf inverts the exact cumulative distribution.
package rng

import (
	"math"
	"math/rand/v2"
	"sort"
)

// RNG draws pseudo-random numbers. Not safe for concurrent use.
type RNG struct {
	*rand.Rand
}

// New returns a generator for the seed. Streams of one seed with different
// stream numbers are independent.
func New(seed uint64, stream uint64) *RNG {
	return &RNG{rand.New(rand.NewPCG(seed, stream^0x9e3779b97f4a7c15))}
}

// Zipf draws ranks 0..n-1 with probability proportional to 1/(rank+1)^theta.
// Theta 0 is uniform. Construction is O(n), a draw O(log n).
type Zipf struct {
	n   int
	cum []float64
}

// NewZipf prepares a distribution over n ranks; theta lies in [0, 4].
func NewZipf(n int, theta float64) *Zipf {
	z := &Zipf{n: n}
	if theta == 0 {
		return z
	}
	z.cum = make([]float64, n)
	sum := 0.0
	for i := range z.cum {
		sum += 1 / math.Pow(float64(i+1), theta)
		z.cum[i] = sum
	}
	for i := range z.cum {
		z.cum[i] /= sum
	}
	return z
}

// Draw returns a rank.
func (z *Zipf) Draw(r *RNG) int {
	if z.cum == nil {
		return r.IntN(z.n)
	}
	return z.At(r.Float64())
}

// At returns the rank that a number from [0, 1) draws.
func (z *Zipf) At(u float64) int {
	if z.cum == nil {
		return min(int(u*float64(z.n)), z.n-1)
	}
	return min(sort.SearchFloat64s(z.cum, u), z.n-1)
}

// Scatter maps the ranks 0..n-1 to themselves, one to one, so that the hot ranks
// of a Zipf do not sit next to each other.
type Scatter struct{ n, step uint64 }

// NewScatter prepares a mapping of n ranks.
func NewScatter(n int) Scatter {
	step := uint64(0.6180339887498949*float64(n)) | 1
	for gcd(step, uint64(n)) != 1 {
		step += 2
	}
	return Scatter{uint64(n), step}
}

// Index returns where rank i goes.
func (s Scatter) Index(i int) int { return int(uint64(i) * s.step % s.n) }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
