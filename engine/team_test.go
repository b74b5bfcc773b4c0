package engine

import (
	"sync/atomic"
	"testing"
)

// Jobs follow each other at once and with pauses in which workers fall asleep:
// each task must be done once, and by nobody when do has returned.
func TestTeamDoesEachTaskOnce(t *testing.T) {
	for n := 1; n <= 4; n++ {
		team, err := newTeam(n)
		if err != nil {
			t.Fatal(err)
		}
		for job := range 3000 {
			var done [7]atomic.Int32
			team.share(len(done), func(_, i int) { done[i].Add(1) })
			for i := range done {
				if got := done[i].Load(); got != 1 {
					t.Fatalf("%d workers, job %d: task %d was done %d times", n, job, i, got)
				}
			}
			if job%500 == 0 {
				poll(2*pollNs, func() bool { return false })
			}
		}
		team.close()
	}
}
