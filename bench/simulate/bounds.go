package simulate

import "github.com/heddle-stream/heddle/tpg"

// Bounds are what no schedule of a batch can beat, in ns.
type Bounds struct {
	Total   float64 // of all operations that a serial run executes
	Longest float64 // of the longest path of operations that wait for each other
}

// Path returns the bounds of a batch. An operation waits for the version that it
// sees in the end; behind a transaction that aborted it waits for the operation
// that failed, which is when that one's versions are known to be void.
func Path(w Work) Bounds {
	var b Bounds
	acc := w.Graph.Acc
	ends := make([]float64, len(acc))
	w.Graph.Operations(func(id uint32) bool {
		e := acc[id].Event
		if f := w.Fail[e]; f != committed && id > uint32(f>>16) {
			return true // never executed
		}
		begin := 0.0
		w.Graph.Dependencies(id, func(on uint32, _ bool) {
			for on != tpg.None {
				q := acc[on].Event
				f := w.Fail[q]
				if q == e || f == committed {
					begin = max(begin, ends[on])
					return
				}
				begin = max(begin, ends[uint32(f>>16)])
				on = acc[on].Pred
			}
		})
		ends[id] = begin + w.Cost[id]
		b.Total += w.Cost[id]
		b.Longest = max(b.Longest, ends[id])
		return true
	})
	return b
}
