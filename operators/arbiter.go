package operators

import (
	"github.com/heddle-stream/heddle/internal/invariants"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/window"
)

// arbiter moves memory between the stores of a job. All have a share from the plan first. Who does not need all of
// it lends to those whose windows had to go to disk, and gets it back when its own have to. The limits of all
// together are never more than that of the job.
type arbiter struct {
	accounts []account // of stores whose share the plan does not fix
	spare    int64     // that nobody has
	wait     int       // batches until memory is divided again
}

// account is the memory of one store.
type account struct {
	store  window.Store
	share  int64 // that the plan gives it
	limit  int64 // that it has
	spills int64 // when memory was divided the last time
	short  bool  // it had to go to disk since
}

// arbiterRest is how many batches there are between two divisions: who gives back memory that is in use has to
// write it.
const arbiterRest = 16

// adds puts a store under the arbiter, unless its share is fixed.
func (a *arbiter) adds(s window.Store, o *window.Options, t *task) {
	if !plan.MemoryShare.Fixed(t.stage.e.g, t.vertex) {
		share := max(o.Limit, window.LimitMin)
		a.accounts = append(a.accounts, account{store: s, share: share, limit: share})
	}
}

// divide gives the stores their parts, if that is due. Between two batches.
func (a *arbiter) divide() error {
	if a.wait--; a.wait > 0 || len(a.accounts) < 2 {
		return nil
	}
	a.wait = arbiterRest
	short, owed := int64(0), false // shares of those who are short, and whether some have less than that
	for i := range a.accounts {
		x := &a.accounts[i]
		spills := x.store.Stats().Spills
		if x.short, x.spills = spills > x.spills, spills; x.short {
			short += x.share
			owed = owed || x.limit < x.share
		}
	}
	if short == 0 {
		return nil
	}
	for i := range a.accounts {
		if x := &a.accounts[i]; !x.short {
			if err := a.resize(x, x.leaves(owed)); err != nil {
				return err
			}
		}
	}
	if err := a.spread(short); err != nil {
		return err
	}
	if invariants.Enabled {
		left := a.spare
		for _, x := range a.accounts {
			left += x.limit - x.share
		}
		invariants.Check(left == 0 && a.spare >= 0, "%d bytes of memory too much, %d spare", left, a.spare)
	}
	return nil
}

// leaves returns the limit of a store that is not short: twice what it uses suffices, and its share if memory
// that it got is wanted back.
func (x *account) leaves(owed bool) int64 {
	limit := min(x.limit, max(2*x.store.Stats().MemoryBytes, window.LimitMin))
	if owed {
		limit = min(limit, x.share)
	}
	return limit
}

// spread divides what others leave among those who are short, by their shares: who has more than that makes room
// first.
func (a *arbiter) spread(short int64) error {
	pool := a.spare
	for i := range a.accounts {
		if a.accounts[i].short {
			pool += a.accounts[i].limit
		}
	}
	for _, less := range []bool{true, false} {
		for i := range a.accounts {
			x := &a.accounts[i]
			to := max(int64(float64(pool)*(float64(x.share)/float64(short))), window.LimitMin)
			if !x.short || less != (to < x.limit) {
				continue
			}
			if err := a.resize(x, min(to, x.limit+a.spare)); err != nil {
				return err
			}
		}
	}
	return nil
}

// resize changes a limit, if it is worth it.
func (a *arbiter) resize(x *account, to int64) error {
	if diff := to - x.limit; max(diff, -diff) <= x.limit/8 {
		return nil
	}
	limit, err := x.store.Resize(to)
	a.spare += x.limit - limit
	x.limit = limit
	return err
}
