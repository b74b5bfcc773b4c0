package window

// Stores makes the stores of a job: those of this package, or others to compare them with. What each
// store promises is what the one of this package does; it is used by one goroutine, several stores
// at once by several.
type Stores interface {
	// Lists makes a store for tuples of windows that are the same for all keys.
	Lists(o Options) (ListStore, error)
	// Accumulators makes one for a value of width bytes per key and such a window. Merge adds the second of two
	// to the first.
	Accumulators(o Options, width int, merge func(into, from []byte)) (AccumulatorStore, error)
	// Unaligned makes one for windows of which each key has its own, with tuples if width is 0, else with a value.
	Unaligned(o Options, width int, merge func(into, from []byte)) (UnalignedStore, error)
}

// Store is what all stores have in common.
type Store interface {
	Stats() Stats
	// Resize gives the store another limit of memory, between two calls, and returns what it has: more than that
	// if the windows as such take more. What there is no room for goes to disk.
	Resize(limit int64) (int64, error)
	// Save and Load, Files and Release are for stores that are kept: see [Options].
	Save(add func(item []byte)) error
	Load(next func() ([]byte, error)) error
	Files() []string
	Release() error
	Close() error
}

// ListStore is a store as [Lists].
type ListStore interface {
	Store
	Append(w Span, hash uint64, key, value []byte) error
	Each(windows []Span, yield func(hash uint64, key []byte, values Values) error) error
	Drop(w Span) error
}

// AccumulatorStore is a store as [Accumulators].
type AccumulatorStore interface {
	Store
	At(w Span, hash uint64, key []byte) (acc []byte, fresh bool, err error)
	Each(windows []Span, yield func(hash uint64, key, acc []byte) error) error
	Drop(w Span) error
}

// UnalignedStore is a store as [Unaligned].
type UnalignedStore interface {
	Store
	Open() (uint32, error)
	Append(id uint32, expected int64, value []byte) error
	At(id uint32, expected int64) (acc []byte, fresh bool, err error)
	Merge(into, from uint32) error
	Each(ids []uint32, yield func(i int, contents []byte) error) error
	Drop(ids []uint32) error
}

// Own makes the stores of this package.
type Own struct{}

// Lists implements [Stores].
func (Own) Lists(o Options) (ListStore, error) { return NewLists(o), nil }

// Accumulators implements [Stores].
func (Own) Accumulators(o Options, width int, merge func(into, from []byte)) (AccumulatorStore, error) {
	return NewAccumulators(o, width, merge), nil
}

// Unaligned implements [Stores].
func (Own) Unaligned(o Options, width int, merge func(into, from []byte)) (UnalignedStore, error) {
	return NewUnaligned(o, width, merge), nil
}
