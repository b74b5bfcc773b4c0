package operators

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/heddle-stream/heddle/internal/rng"
)

// Counting is what Count aggregates into.
type Counting struct{ N int64 }

// Count counts items.
func Count[T any]() Aggregator[T, Counting] {
	return Aggregator[T, Counting]{
		Add:   func(acc *Counting, _ *T) { acc.N++ },
		Merge: func(into, from *Counting) { into.N += from.N },
	}
}

// Summing is what Sum aggregates into: how many items there were and the sum of their values.
type Summing struct{ N, Sum int64 }

// Mean returns the average, 0 of no items.
func (s *Summing) Mean() float64 {
	if s.N == 0 {
		return 0
	}
	return float64(s.Sum) / float64(s.N)
}

// Sum sums up a value of each item. It is one of whole numbers, so that the order in which parts
// meet makes no difference.
func Sum[T any](value func(item *T) int64) Aggregator[T, Summing] {
	return Aggregator[T, Summing]{
		Add:   func(acc *Summing, item *T) { acc.N, acc.Sum = acc.N+1, acc.Sum+value(item) },
		Merge: func(into, from *Summing) { into.N, into.Sum = into.N+from.N, into.Sum+from.Sum },
	}
}

// Ranging is what Range aggregates into: how many items there were, and the least and the
// greatest value.
type Ranging[V cmp.Ordered] struct {
	N        int64
	Min, Max V
}

// Range finds the least and the greatest value. V has to be of a fixed size.
func Range[T any, V cmp.Ordered](value func(item *T) V) Aggregator[T, Ranging[V]] {
	merge := func(into, from *Ranging[V]) {
		switch {
		case from.N == 0:
			return
		case into.N == 0:
			*into = *from
			return
		}
		into.N, into.Min, into.Max = into.N+from.N, min(into.Min, from.Min), max(into.Max, from.Max)
	}
	return Aggregator[T, Ranging[V]]{
		Add: func(acc *Ranging[V], item *T) {
			v := value(item)
			merge(acc, &Ranging[V]{1, v, v})
		},
		Merge: merge,
	}
}

// sketchBits is how many bits of a hash choose a register.
const sketchBits = 10

// Sketch counts distinct values, about: HyperLogLog (Flajolet, Fusy, Gandouet and Meunier, 2007)
// with 1,024 registers, whose standard error is 3.3 %.
type Sketch struct{ registers [1 << sketchBits]uint8 }

// Distinct counts distinct values, given by 64 bits that stand for them, about.
func Distinct[T any](value func(item *T) uint64) Aggregator[T, Sketch] {
	return Aggregator[T, Sketch]{
		Add: func(acc *Sketch, item *T) {
			h := rng.Mix(value(item) + 0x9e3779b97f4a7c15)
			r := &acc.registers[h>>(64-sketchBits)]
			*r = max(*r, uint8(1+bits.LeadingZeros64(h<<sketchBits|1<<(sketchBits-1))))
		},
		Merge: func(into, from *Sketch) {
			for i, r := range from.registers {
				into.registers[i] = max(into.registers[i], r)
			}
		},
	}
}

// Estimate returns how many distinct values there were, about.
func (s *Sketch) Estimate() float64 {
	const m = 1 << sketchBits
	sum, empty := 0.0, 0
	for _, r := range s.registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 { // of few values linear counting knows more
		return m * math.Log(m/float64(empty))
	}
	return estimate
}
