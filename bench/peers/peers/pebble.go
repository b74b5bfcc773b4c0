package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"

	"github.com/heddle-stream/heddle/workloads/sl"
)

// pebbleBatch is how many events share a batch of writes: Heddle's batch.
const pebbleBatch = 4096

// pebbleJob runs the events one by one on Pebble, a log-structured merge tree. What a batch
// wrote is kept in a map until it goes to the tree as one, which is faster than an indexed
// batch; there is no log, since nobody compares durability here.
type pebbleJob struct {
	in    *Input
	dir   string
	db    *pebble.DB
	fresh map[[5]byte]int64 // written in the batch in hand
}

func preparePebble(in *Input) (Job, error) {
	dir, err := os.MkdirTemp("", "peers-pebble-")
	if err != nil {
		return nil, err
	}
	j := &pebbleJob{in: in, dir: dir, fresh: map[[5]byte]int64{}}
	cache := pebble.NewCache(max(in.Memory/2, 8<<20))
	defer cache.Unref()
	if j.db, err = pebble.Open(dir, &pebble.Options{Cache: cache, DisableWAL: true, MemTableSize: uint64(max(in.Memory/8, 4<<20)), Logger: silent{}}); err == nil {
		err = j.load()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pebble: %w", err), j.Close())
	}
	return j, nil
}

// silent keeps what Pebble has to say to itself.
type silent struct{}

func (silent) Infof(string, ...any)           {}
func (silent) Errorf(string, ...any)          {}
func (silent) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }

func (j *pebbleJob) load() error {
	for table := range byte(2) {
		for k := range uint32(j.in.Keys) {
			j.fresh[pebbleKey(table, k)] = sl.Opening
			if len(j.fresh) == 1<<16 {
				if err := j.flush(); err != nil {
					return err
				}
			}
		}
	}
	if err := j.flush(); err != nil {
		return err
	}
	if err := j.db.Flush(); err != nil {
		return err
	}
	return j.db.Compact(context.Background(), []byte{0}, []byte{255}, true)
}

func pebbleKey(table byte, k uint32) (key [5]byte) {
	key[0] = table
	binary.BigEndian.PutUint32(key[1:], k)
	return key
}

func (j *pebbleJob) flush() error {
	b := j.db.NewBatch()
	var value [8]byte
	for key, v := range j.fresh {
		binary.LittleEndian.PutUint64(value[:], uint64(v))
		if err := b.Set(key[:], value[:], nil); err != nil {
			return err
		}
	}
	clear(j.fresh)
	return b.Commit(pebble.NoSync)
}

func (j *pebbleJob) get(key [5]byte) (int64, error) {
	if v, ok := j.fresh[key]; ok {
		return v, nil
	}
	value, done, err := j.db.Get(key[:])
	if err != nil {
		return 0, err
	}
	v := int64(binary.LittleEndian.Uint64(value))
	return v, done.Close()
}

func (j *pebbleJob) add(key [5]byte, amount int64) error {
	v, err := j.get(key)
	j.fresh[key] = v + amount
	return err
}

// Run implements [Job].
func (j *pebbleJob) Run(ctx context.Context) error {
	for i := range j.in.Events {
		if err := j.execute(&j.in.Events[i]); err != nil {
			return fmt.Errorf("pebble: event %d: %w", i, err)
		}
		if (i+1)%pebbleBatch == 0 {
			if err := errors.Join(j.flush(), ctx.Err()); err != nil {
				return err
			}
		}
	}
	return j.flush()
}

func (j *pebbleJob) execute(e *sl.Event) error {
	if e.IsDeposit {
		d := &e.Deposit
		return errors.Join(j.add(pebbleKey(0, d.Account), d.Amount), j.add(pebbleKey(1, d.Book), d.Amount))
	}
	t := &e.Transfer
	from, fromBook := pebbleKey(0, t.From), pebbleKey(1, t.FromBook)
	account, err := j.get(from)
	if err != nil || account < t.Amount {
		return err
	}
	book, err := j.get(fromBook)
	if err != nil || book < t.BookAmount {
		return err
	}
	j.fresh[from], j.fresh[fromBook] = account-t.Amount, book-t.BookAmount
	return errors.Join(j.add(pebbleKey(0, t.To), t.Amount), j.add(pebbleKey(1, t.ToBook), t.BookAmount))
}

// State implements [Job].
func (j *pebbleJob) State() (State, error) {
	rows := [2]map[uint32]int64{{}, {}}
	it, err := j.db.NewIter(nil)
	if err != nil {
		return State{}, err
	}
	for it.First(); it.Valid(); it.Next() {
		rows[it.Key()[0]][binary.BigEndian.Uint32(it.Key()[1:])] = int64(binary.LittleEndian.Uint64(it.Value()))
	}
	return mapState(rows[0], rows[1]), it.Close()
}

// Close implements [Job].
func (j *pebbleJob) Close() error {
	var err error
	if j.db != nil {
		err = j.db.Close()
	}
	return errors.Join(err, os.RemoveAll(j.dir))
}
