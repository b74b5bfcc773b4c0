package peers

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/workloads/sl"
)

// Locks in event order, as S-Store takes them. Plain locking lets two transfers
// from one account run in any order, and when there is money for one of them
// only, the final state depends on which came first. So each shard has a ticket
// lock, and tickets are drawn in event order: a goroutine takes the next events
// and their tickets while it holds the intake, then waits for each of its shards
// to come to its ticket. The earliest event that has not ended is always next on
// all of its shards, so nobody waits for ever.
const (
	// README.md has what these were chosen from.
	shardCount  = 1024
	intakeCount = 4    // events taken at once
	spins       = 4096 // looks at a lock before parking
)

// shard is a part of both tables with its lock. Shards stand on cache lines of
// their own.
type shard struct {
	serving         atomic.Uint64 // the ticket that may enter
	parked          atomic.Int32  // how many sleep until it is their turn
	accounts, books map[uint32]int64
	mu              sync.Mutex // for parking only
	turn            *sync.Cond
	_               [16]byte
}

type locksJob struct {
	events []sl.Event
	shards [shardCount]shard

	intake  sync.Mutex
	next    int                // the next event, guarded by intake
	tickets [shardCount]uint64 // the next of each shard, guarded by intake
}

func prepareLocks(in *Input) (Job, error) {
	j := &locksJob{events: in.Events}
	for i := range j.shards {
		s := &j.shards[i]
		s.accounts, s.books, s.turn = map[uint32]int64{}, map[uint32]int64{}, sync.NewCond(&s.mu)
	}
	for k := range uint32(in.Keys) {
		j.shards[accountShard(k)].accounts[k] = sl.Opening
		j.shards[bookShard(k)].books[k] = sl.Opening
	}
	return j, nil
}

func accountShard(key uint32) uint32 { return (key * 0x9e3779b1 >> 16) % shardCount }
func bookShard(key uint32) uint32    { return (key * 0x85ebca6b >> 16) % shardCount }

// claim is an event's place in the queues of its shards.
type claim struct {
	n       int
	shards  [4]uint32 // ascending
	tickets [4]uint64
}

// add keeps the shards in ascending order and each once.
func (c *claim) add(shard uint32) {
	i := c.n
	for ; i > 0 && c.shards[i-1] >= shard; i-- {
		if c.shards[i-1] == shard {
			return
		}
	}
	copy(c.shards[i+1:], c.shards[i:c.n])
	c.shards[i] = shard
	c.n++
}

func (c *claim) of(e *sl.Event) {
	c.n = 0
	if e.IsDeposit {
		c.add(accountShard(e.Deposit.Account))
		c.add(bookShard(e.Deposit.Book))
		return
	}
	t := &e.Transfer
	c.add(accountShard(t.From))
	c.add(accountShard(t.To))
	c.add(bookShard(t.FromBook))
	c.add(bookShard(t.ToBook))
}

func (j *locksJob) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() { j.work(ctx) })
	}
	wg.Wait()
	return ctx.Err()
}

func (j *locksJob) work(ctx context.Context) {
	var claims [intakeCount]claim
	for ctx.Err() == nil {
		events := j.take(&claims)
		if len(events) == 0 {
			return
		}
		for i := range events {
			c := &claims[i]
			for k := range c.n {
				j.shards[c.shards[k]].enter(c.tickets[k])
			}
			j.execute(&events[i])
			for k := range c.n {
				j.shards[c.shards[k]].leave(c.tickets[k])
			}
		}
	}
}

// take returns the next events with their tickets.
func (j *locksJob) take(claims *[intakeCount]claim) []sl.Event {
	j.intake.Lock()
	defer j.intake.Unlock()
	events := j.events[j.next:min(j.next+intakeCount, len(j.events))]
	j.next += len(events)
	for i := range events {
		c := &claims[i]
		c.of(&events[i])
		for k := range c.n {
			c.tickets[k] = j.tickets[c.shards[k]]
			j.tickets[c.shards[k]]++
		}
	}
	return events
}

// enter waits for the ticket's turn: awake for a moment, since locks are held
// for less time than it takes to park, then parked, which lets a holder run that
// has lost its processor to somebody else.
func (s *shard) enter(ticket uint64) {
	for range spins {
		if s.serving.Load() == ticket {
			return
		}
	}
	s.mu.Lock()
	s.parked.Add(1)
	for s.serving.Load() != ticket {
		s.turn.Wait()
	}
	s.parked.Add(-1)
	s.mu.Unlock()
}

// leave lets the next ticket in. Either it sees a waiter that has counted itself
// as parked, or that one sees its own turn before it parks.
func (s *shard) leave(ticket uint64) {
	s.serving.Store(ticket + 1)
	if s.parked.Load() > 0 {
		s.mu.Lock()
		s.turn.Broadcast()
		s.mu.Unlock()
	}
}

func (j *locksJob) execute(e *sl.Event) {
	if e.IsDeposit {
		j.shards[accountShard(e.Deposit.Account)].accounts[e.Deposit.Account] += e.Deposit.Amount
		j.shards[bookShard(e.Deposit.Book)].books[e.Deposit.Book] += e.Deposit.Amount
		return
	}
	t := &e.Transfer
	from, book := j.shards[accountShard(t.From)].accounts, j.shards[bookShard(t.FromBook)].books
	if from[t.From] < t.Amount || book[t.FromBook] < t.BookAmount {
		return
	}
	from[t.From] -= t.Amount
	book[t.FromBook] -= t.BookAmount
	j.shards[accountShard(t.To)].accounts[t.To] += t.Amount
	j.shards[bookShard(t.ToBook)].books[t.ToBook] += t.BookAmount
}

func (j *locksJob) State() (State, error) {
	accounts, books := map[uint32]int64{}, map[uint32]int64{}
	for i := range j.shards {
		maps.Copy(accounts, j.shards[i].accounts)
		maps.Copy(books, j.shards[i].books)
	}
	return mapState(accounts, books), nil
}

func (*locksJob) Close() error { return nil }
