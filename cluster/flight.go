package cluster

// flight is the events under way: when each arrived, and whether it is affected by a change. They
// come to their ends in about the order of their numbers.
type flight struct {
	base     uint64 // number of the first one
	events   []flying
	head     int // those before it are done
	open     int
	affected []bool
}

type flying struct {
	arrival  int64
	affected bool
	done     bool
}

func (f *flight) len() int { return f.open }

// add adds n events that arrived one after the other, the last one at the second time.
func (f *flight) add(first uint64, n int, from, to int64) {
	if len(f.events) == 0 {
		f.base = first
	}
	for i := range n {
		f.events = append(f.events, flying{arrival: from + (to-from)*int64(i+1)/int64(n)})
	}
	f.open += n
}

// touch notes that an event is affected.
func (f *flight) touch(seq uint64) {
	if seq >= f.base { // else it is done, and done again
		f.events[seq-f.base].affected = true
	}
}

// done takes an event out.
func (f *flight) done(seq uint64) (arrival int64, affected, ok bool) {
	if seq < f.base || seq-f.base >= uint64(len(f.events)) || f.events[seq-f.base].done {
		return 0, false, false
	}
	e := &f.events[seq-f.base]
	e.done = true
	f.open--
	arrival, affected = e.arrival, e.affected
	for f.head < len(f.events) && f.events[f.head].done {
		f.head++
	}
	if f.head == len(f.events) || f.head >= flightTrim && f.head > len(f.events)/2 {
		f.base += uint64(f.head)
		f.events, f.head = append(f.events[:0], f.events[f.head:]...), 0
	}
	return arrival, affected, true
}

// flightTrim is how many ended events are taken off at a time, at least.
const flightTrim = 4096
