package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/program"
)

// Program is some jobs over one input: what a command line can run without knowing it. The
// embedded program has its name, its flags and how many events it makes; it has no New.
type Program struct {
	program.Program
	Jobs []Named
	// Open makes one of the jobs.
	Open func(name string, c *program.Config, w Wanted) (*Instance, error)
}

// Wanted is what somebody wants of a job besides its results' number and hash.
type Wanted struct {
	Verify bool   // results stay, to be verified
	Output string // a file that gets results as lines of JSON, "" for none
}

// Named is a job and what it does, in one line.
type Named struct{ Name, About string }

// Instance is a job that can be run once.
type Instance struct {
	Plan *plan.Graph
	// Results tells, after the run, how many there were, and the sum of their hashes.
	Results func() (count int64, hash string)
	// Verify compares the results with those of a model, a loop over all events on one processor, and returns
	// how many ns that loop took. Nil if there is none.
	Verify func() (loopNanos int64, err error)
	// Close gives back what the job holds besides its plan, and returns what there is to tell of
	// it, a line each. Nil if there is nothing.
	Close func() (notes []string, err error)
}

// Find returns the jobs that a text names: all of them, or some separated by commas.
func (p *Program) Find(names string) ([]Named, error) {
	var found []Named
	for name := range strings.SplitSeq(names, ",") {
		if name == "all" {
			return p.Jobs, nil
		}
		i := slices.IndexFunc(p.Jobs, func(n Named) bool { return n.Name == name })
		if i < 0 {
			var known []string
			for _, n := range p.Jobs {
				known = append(known, n.Name)
			}
			return nil, fmt.Errorf("%s has no job %q: all, or some of %s", p.Name, name, strings.Join(known, ", "))
		}
		if !slices.Contains(found, p.Jobs[i]) {
			found = append(found, p.Jobs[i])
		}
	}
	return found, nil
}
