package engine

import (
	"sync"
	"sync/atomic"

	"github.com/panjf2000/ants/v2"
)

// team is the workers of a run. Worker 0 is the goroutine that calls do, the
// others live on an ants pool for the length of the run.
type team struct {
	n    int
	pool *ants.Pool
	jobs []chan func(worker int)
	wg   sync.WaitGroup
	next atomic.Int64
}

func newTeam(n int) (*team, error) {
	t := &team{n: n}
	if n == 1 {
		return t, nil
	}
	pool, err := ants.NewPool(n-1, ants.WithDisablePurge(true))
	if err != nil {
		return nil, err
	}
	t.pool = pool
	for i := 1; i < n; i++ {
		jobs := make(chan func(int), 1)
		t.jobs = append(t.jobs, jobs)
		err := pool.Submit(func() {
			for job := range jobs {
				job(i)
				t.wg.Done()
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

// do runs the job on every worker and returns when all are done.
func (t *team) do(job func(worker int)) {
	t.wg.Add(t.n - 1)
	for _, jobs := range t.jobs {
		jobs <- job
	}
	job(0)
	t.wg.Wait()
}

// share runs task 0..tasks-1, each once, on whichever worker is free.
func (t *team) share(tasks int, task func(worker, i int)) {
	if t.n == 1 || tasks == 1 {
		for i := range tasks {
			task(0, i)
		}
		return
	}
	t.next.Store(0)
	t.do(func(worker int) {
		for {
			i := int(t.next.Add(1)) - 1
			if i >= tasks {
				return
			}
			task(worker, i)
		}
	})
}

func (t *team) close() {
	for _, jobs := range t.jobs {
		close(jobs)
	}
	if t.pool != nil {
		t.pool.Release()
	}
}
