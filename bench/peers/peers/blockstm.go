package peers

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"runtime"

	storetypes "cosmossdk.io/store/types"
	blockstm "github.com/crypto-org-chain/go-block-stm"
	"github.com/heddle-stream/heddle/workloads/sl"
)

// blockSize is the number of transactions in a block; README.md has what it was
// chosen from.
const blockSize = 2000

// stmJob runs each event as a transaction of a block over two stores.
type stmJob struct {
	in       *Input
	accounts storetypes.StoreKey
	books    storetypes.StoreKey
	stores   map[storetypes.StoreKey]int
	db       *blockstm.MultiMemDB
	// The bytes of each key, made once: the stores keep keys but do not change them.
	keys [][]byte
}

func prepareBlockSTM(in *Input) (Job, error) {
	j := &stmJob{in: in, accounts: storetypes.NewKVStoreKey("accounts"), books: storetypes.NewKVStoreKey("books")}
	j.stores = map[storetypes.StoreKey]int{j.accounts: 0, j.books: 1}
	j.db = blockstm.NewMultiMemDB(j.stores)
	slab := make([]byte, 4*in.Keys)
	for k := range in.Keys {
		key := slab[4*k : 4*k+4 : 4*k+4]
		binary.BigEndian.PutUint32(key, uint32(k))
		j.keys = append(j.keys, key)
		for name := range j.stores {
			j.db.GetKVStore(name).Set(key, encode(sl.Opening))
		}
	}
	return j, nil
}

func encode(v int64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(v)) }

func decode(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func (j *stmJob) Run(ctx context.Context) error {
	for events := j.in.Events; len(events) > 0; {
		block := events[:min(blockSize, len(events))]
		events = events[len(block):]
		execute := func(i blockstm.TxnIndex, view blockstm.MultiStore) { j.execute(&block[i], view) }
		if err := blockstm.ExecuteBlock(ctx, len(block), j.stores, j.db, runtime.GOMAXPROCS(0), execute); err != nil {
			return fmt.Errorf("block-stm: %w", err)
		}
	}
	return nil
}

func (j *stmJob) execute(e *sl.Event, view blockstm.MultiStore) {
	accounts, books := view.GetKVStore(j.accounts), view.GetKVStore(j.books)
	if e.IsDeposit {
		j.add(accounts, e.Deposit.Account, e.Deposit.Amount)
		j.add(books, e.Deposit.Book, e.Deposit.Amount)
		return
	}
	t := &e.Transfer
	account, book := decode(accounts.Get(j.keys[t.From])), decode(books.Get(j.keys[t.FromBook]))
	if account < t.Amount || book < t.BookAmount {
		return
	}
	accounts.Set(j.keys[t.From], encode(account-t.Amount))
	books.Set(j.keys[t.FromBook], encode(book-t.BookAmount))
	j.add(accounts, t.To, t.Amount)
	j.add(books, t.ToBook, t.BookAmount)
}

func (j *stmJob) add(store storetypes.KVStore, key uint32, amount int64) {
	store.Set(j.keys[key], encode(decode(store.Get(j.keys[key]))+amount))
}

func (j *stmJob) State() (State, error) {
	rows := func(name storetypes.StoreKey) iter.Seq2[uint32, int64] {
		return func(yield func(uint32, int64) bool) {
			it := j.db.GetKVStore(name).Iterator(nil, nil)
			defer it.Close()
			for ; it.Valid(); it.Next() {
				if !yield(binary.BigEndian.Uint32(it.Key()), decode(it.Value())) {
					return
				}
			}
		}
	}
	return State{rows(j.accounts), rows(j.books)}, nil
}

func (*stmJob) Close() error { return nil }
