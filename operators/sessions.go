package operators

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/storage/window"
)

// sessions are the windows that are open in a partition, of which each key has its own.
type sessions[K comparable] struct {
	panes bool // they do not grow
	store window.UnalignedStore
	all   []sessionOf[K] // by the number that the store gave
	first map[K]uint32   // the number of a session of the key, plus one
	ends  timers         // of sessions, as they were when it was last looked
	due   []uint32
}

// sessionOf is a session of one key.
type sessionOf[K comparable] struct {
	key  K
	hash uint64
	id   uint32
	next uint32 // the number of another session of the key, plus one
	span Span
	open bool
}

func newSessions[K comparable](w *Windows, store window.UnalignedStore, t *task, keys *keyCodec[K]) *sessions[K] {
	s := &sessions[K]{panes: w.kind == pane, store: store, first: map[K]uint32{}}
	t.lasts(fmt.Sprintf("sessions %d %d %s", w.kind, w.gap, shapeOf[K]()), func(w *image.Writer) error {
		s.save(w, keys)
		return nil
	}, func(r *image.Reader) error {
		s.load(r, keys)
		return nil
	})
	return s
}

// save writes the sessions that are open. Those of one key are a list, in whose order they
// are merged: it stays.
func (s *sessions[K]) save(w *image.Writer, keys *keyCodec[K]) {
	for id := range s.all {
		o := &s.all[id]
		if !o.open {
			continue
		}
		w.Int(int64(id))
		w.Int(int64(o.next))
		w.Bool(s.first[o.key] == o.id+1)
		w.Int(o.span.Start)
		w.Int(o.span.End)
		keys.put(w, &o.key)
		w.Item()
	}
}

func (s *sessions[K]) load(r *image.Reader, keys *keyCodec[K]) {
	for r.Item() {
		id, next, isFirst := r.Int(), r.Int(), r.Bool()
		o := sessionOf[K]{id: uint32(id), next: uint32(next), open: true, span: Span{Start: r.Int(), End: r.Int()}, key: keys.get(r)}
		if id < 0 || id > math.MaxInt32 || next < 0 || next > math.MaxInt32 || r.Err() != nil {
			r.Fail()
			return
		}
		o.hash = keys.hash(o.key)
		for int(id) >= len(s.all) {
			s.all = append(s.all, sessionOf[K]{})
		}
		s.all[id] = o
		if isFirst {
			s.first[o.key] = o.id + 1
		}
		heap.Push(&s.ends, timer{o.span.End, o.id})
	}
}

// at returns the session of an item, with which others that it connects are merged.
func (s *sessions[K]) at(key K, hash uint64, time, gap int64) (*sessionOf[K], error) {
	span := Span{Start: time, End: time + min(max(gap, 1), sizeMax)}
	if s.panes {
		span.End = time + 1
	}
	at, met := s.first[key], uint32(0)
	for before := uint32(0); at != 0; {
		o := &s.all[at-1]
		next := o.next
		switch {
		case span.Start >= o.span.End || o.span.Start >= span.End:
			before = at
		case met == 0:
			met, before = at, at
			s.grow(o, span)
		default: // the item connects two
			m := &s.all[met-1]
			if err := s.store.Merge(m.id, o.id); err != nil {
				return nil, err
			}
			s.grow(m, o.span)
			o.open = false
			s.all[before-1].next = next
		}
		at = next
	}
	if met != 0 {
		return &s.all[met-1], nil
	}
	if s.panes {
		span.End = time + gap
	}
	return s.begin(key, hash, span)
}

// grow lets a session reach as far as another span.
func (s *sessions[K]) grow(o *sessionOf[K], to Span) {
	o.span.Start, o.span.End = min(o.span.Start, to.Start), max(o.span.End, to.End)
}

func (s *sessions[K]) begin(key K, hash uint64, span Span) (*sessionOf[K], error) {
	id, err := s.store.Open()
	if err != nil {
		return nil, err
	}
	for int(id) >= len(s.all) {
		s.all = append(s.all, sessionOf[K]{})
	}
	s.all[id] = sessionOf[K]{key: key, hash: hash, id: id, next: s.first[key], span: span, open: true}
	s.first[key] = id + 1
	heap.Push(&s.ends, timer{span.End, id})
	return &s.all[id], nil
}

// fire yields the sessions that end at or before the watermark, in the order of their ends, then
// of hashes and keys. Others have gone on: their timers are set anew.
func (s *sessions[K]) fire(watermark int64, keys *keyCodec[K], c *Counters, yield func(o *sessionOf[K], contents []byte) error, done func() error) error {
	s.due = s.due[:0]
	for len(s.ends) > 0 && s.ends[0].at <= watermark {
		t := &s.ends[0]
		o := &s.all[t.id]
		if o.open && o.span.End > watermark {
			t.at = o.span.End
			heap.Fix(&s.ends, 0)
			continue
		}
		if o.open {
			s.due = append(s.due, t.id)
			o.open = false
		}
		heap.Pop(&s.ends)
	}
	if len(s.due) == 0 {
		return nil
	}
	slices.SortFunc(s.due, func(a, b uint32) int { return s.order(a, b, keys) })
	if err := s.store.Each(s.due, func(i int, contents []byte) error { return yield(&s.all[s.due[i]], contents) }); err != nil {
		return err
	}
	c.Fires.Add(int64(len(s.due)))
	for _, id := range s.due {
		s.forget(id)
	}
	if err := s.store.Drop(s.due); err != nil {
		return err
	}
	return done()
}

func (s *sessions[K]) order(a, b uint32, keys *keyCodec[K]) int {
	x, y := &s.all[a], &s.all[b]
	if d := cmp.Or(cmp.Compare(x.span.End, y.span.End), cmp.Compare(x.hash, y.hash)); d != 0 {
		return d
	}
	return cmp.Or(bytes.Compare(keys.append(nil, &x.key), keys.append(nil, &y.key)), cmp.Compare(x.span.Start, y.span.Start))
}

// forget takes a session out of those of its key.
func (s *sessions[K]) forget(id uint32) {
	o := &s.all[id]
	if s.first[o.key] == id+1 {
		if o.next == 0 {
			delete(s.first, o.key)
		} else {
			s.first[o.key] = o.next
		}
		return
	}
	at := s.first[o.key]
	for s.all[at-1].next != id+1 {
		at = s.all[at-1].next
	}
	s.all[at-1].next = o.next
}

// timer is when a session ends.
type timer struct {
	at int64
	id uint32
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
