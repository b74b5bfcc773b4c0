package operators

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/internal/codec"
	"github.com/heddle-stream/heddle/internal/image"
	"github.com/heddle-stream/heddle/plan"
)

// lasting is something that an execution remembers from batch to batch, in a form that another
// process can go on with. All that is there between two batches is one or another of them:
// where sources stand, what waits in exchanges, states of operators, contents of windows,
// how far files are written.
type lasting struct {
	name string // unique in a job: vertex or edge, partition and what it is
	save func(w *image.Writer) error
	load func(r *image.Reader) error
}

// lasts registers something of the partition that is built.
func (t *task) lasts(what string, save func(w *image.Writer) error, load func(r *image.Reader) error) {
	e := t.stage.e
	e.lasting = append(e.lasting, lasting{fmt.Sprintf("%s/%d/%s", t.vertex, t.partition, what), save, load})
}

// codecOf returns the codec of something that a vertex remembers. Only a job that is kept needs it.
func codecOf[T any](e *Exec, vertex plan.ID, what string) (c codec.Codec[T]) {
	if !e.env.Keep {
		return c
	}
	c, err := codec.Derive[T]()
	if err != nil {
		e.fail(vertex, fmt.Errorf("%s cannot be kept: %w", what, err))
	}
	return c
}

// shapeOf tells of which form something is that a vertex remembers.
func shapeOf[T any]() string { return codec.Shape(reflect.TypeFor[T]()) }

// fail makes the execution fail before it begins.
func (e *Exec) fail(vertex plan.ID, err error) {
	e.failed = append(e.failed, fmt.Errorf("%s: %w", vertex, err))
}

// Blocks of what an execution saves: the name of something, then its items.
const (
	stateName  = 'N'
	stateItems = 'I'
)

// ErrOtherJob tells that what was saved is of another job.
var ErrOtherJob = errors.New("the state is of another job")

// Save writes all that the execution remembers, between two batches, as blocks. When it returns,
// what they refer to survives a crash.
func (e *Exec) Save(b *blocks.Writer) error {
	for _, l := range e.lasting {
		b.Block(stateName, []byte(l.name))
		items := b.Items(stateItems)
		if err := l.save(&image.Writer{Add: func(item []byte) { items.Add(item) }}); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		items.Flush()
	}
	if e.dir == "" {
		return nil
	}
	return e.env.FS.SyncDir(e.dir)
}

// Load makes an execution that did nothing yet what one was that was saved. The block that ends
// it is the next one to be read; it must not be of a kind that Save writes.
func (e *Exec) Load(b *blocks.Reader) error {
	if err := b.Next(); err != nil {
		return err
	}
	for _, l := range e.lasting {
		if b.Kind != stateName || string(b.Payload) != l.name {
			return fmt.Errorf("%w: it has %q where the job has %q", ErrOtherJob, b.Payload, l.name)
		}
		r := &image.Reader{Next: b.Items(stateItems)}
		err := l.load(r)
		if err == nil {
			err = r.Err()
		}
		for err == nil && r.Item() {
			err = image.ErrOther
		}
		if errors.Is(err, image.ErrOther) || errors.Is(err, codec.ErrCorrupt) {
			return b.Corrupt(l.name + ": " + err.Error())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	b.Again()
	return nil
}

// Sizes reads what Save wrote, without a job, and returns the bytes of items that each vertex or edge
// has. The block that ends it is in hand then.
func Sizes(b *blocks.Reader) (map[string]int64, error) {
	sizes, of := map[string]int64{}, ""
	for {
		if err := b.Next(); err != nil {
			return nil, err
		}
		switch b.Kind {
		case stateName:
			of, _, _ = strings.Cut(string(b.Payload), "/")
		case stateItems:
			sizes[of] += int64(len(b.Payload))
		default:
			return sizes, nil
		}
	}
}

// putValue adds a value to an item, and getValue reads it from there.
func putValue[T any](w *image.Writer, c *codec.Codec[T], v *T) {
	w.Append(func(dst []byte) []byte { return c.Append(dst, v) })
}

func getValue[T any](r *image.Reader, c *codec.Codec[T], v *T) {
	r.Decode(func(src []byte) ([]byte, error) { return c.Decode(src, v) })
}

// put adds a key to an item, and get reads it from there.
func (c *keyCodec[K]) put(w *image.Writer, k *K) { w.Bytes(c.append(nil, k)) }

func (c *keyCodec[K]) get(r *image.Reader) (k K) {
	b := r.Bytes()
	r.Decode(func(rest []byte) (_ []byte, err error) {
		k, err = c.decode(b)
		return rest, err
	})
	return k
}

// lastTimed makes items last that wait in a partition.
func lastTimed[T any](t *task, what string, waiting *[]timed[T]) {
	c := codecOf[T](t.stage.e, t.vertex, "an item that waits")
	t.lasts(what+" "+shapeOf[T](), func(w *image.Writer) error {
		for i := range *waiting {
			x := &(*waiting)[i]
			w.Int(x.at)
			w.Int(int64(x.port))
			putValue(w, &c, &x.item)
			w.Item()
		}
		return nil
	}, func(r *image.Reader) error {
		for r.Item() {
			x := timed[T]{at: r.Int(), port: int(r.Int())}
			getValue(r, &c, &x.item)
			*waiting = append(*waiting, x)
		}
		return nil
	})
}

// lastCounters makes the counters of a vertex last.
func (e *Exec) lastCounters(vertex plan.ID, c *Counters) {
	all := []interface {
		Load() int64
		Store(v int64)
	}{&c.In, &c.Out, &c.Late, &c.Far, &c.Fires}
	e.lasting = append(e.lasting, lasting{string(vertex) + "/counters", func(w *image.Writer) error {
		for _, n := range all {
			w.Int(n.Load())
		}
		w.Item()
		return nil
	}, func(r *image.Reader) error {
		r.Want()
		for _, n := range all {
			n.Store(r.Int())
		}
		return nil
	}})
}
