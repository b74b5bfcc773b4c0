package window

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// evicted is a window of a store that may go to disk.
type evicted interface {
	bounds() Span
	spillable() int64 // bytes of memory that become free then
}

// spillPart is of how much memory a spill makes one part free.
const spillPart = 8

// spillLast takes windows to disk that end last of those that have much in memory: the very last one may have
// only what came since it went there. An eighth of the memory becomes free, so that looking for
// them does not cost more than writing them.
func spillLast[W evicted](c *chunks, windows map[Span]W, write func(W) error) error {
	var some []W
	fair := c.used / int64(2*len(windows)+1) // half of what a window has on average
	for _, w := range windows {
		if n := w.spillable(); n > 0 && n >= fair {
			some = append(some, w)
		}
	}
	if len(some) == 0 { // all is taken by the windows as such, or by free chunks, which are in use soon
		return errOpen(len(windows), c.limit)
	}
	slices.SortFunc(some, func(a, b W) int { return -compareSpans(a.bounds(), b.bounds()) })
	wanted := c.used / spillPart
	for _, w := range some {
		wanted -= w.spillable()
		c.stats.Spills++
		if err := write(w); err != nil {
			return err
		}
		if wanted <= 0 {
			break
		}
	}
	return nil
}

// ErrTooMany is that windows take all memory, without what they contain.
var ErrTooMany = errors.New("too many windows are open")

func errOpen(windows int, limit int64) error {
	return fmt.Errorf("%w: %d bytes of memory do not suffice for %d: a larger memory limit does", ErrTooMany, limit, windows)
}

// compareSpans orders windows by their ends: the one that ends last goes to disk first.
func compareSpans(a, b Span) int {
	return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start))
}
