package schedule

// What the engine takes by itself, in ns on one core of the machine where this was
// written. Only what is predicted before anything was measured depends on these
// figures being near the truth: afterwards they are corrected strategy by strategy.
const (
	serialEventNs, serialAccessNs = 20, 20
	graphEventNs, graphAccessNs   = 90, 55  // plan, link, run and install
	splitOpNs                     = 90      // an operation published by itself
	unitOpNs                      = 45      // laying out strata or chains: on one core
	barrierNs                     = 6_000   // a stratum's end
	componentAccessNs             = 12      // looking for components: on one core
	stallNs                       = 200     // a unit that is put aside and taken up again
	resetNs                       = 400     // of a transaction that has to run again
	batchNs                       = 20_000  // waking workers, handing over between steps
	fineNs                        = 2_000.0 // an operation from which on a run splits transactions
)

// fine reports whether operations that take so long are published one by one.
func fine(workNs float64) bool { return workNs > fineNs }

// model returns the ns per event that a strategy takes for a load whose operations
// spend workNs each in user functions: what there is to do shared by the workers,
// or the longest path through it, whichever is longer.
func model(s *Strategy, l *Load, workNs float64) float64 {
	work := l.Ops * workNs
	if s.kind == Serial {
		return serialEventNs + serialAccessNs*l.Accesses + work
	}
	workers, events := float64(max(1, l.Workers)), float64(max(1, l.Events))
	whole := s.unit == byTransaction || s.unit == byOperation && s.explore == ns && !fine(workNs)
	shared := graphEventNs + graphAccessNs*l.Accesses + work
	alone := batchNs / events
	path := l.Shape.Share(l.Shape.Path) * (work + graphAccessNs*l.Accesses)
	if s.nested {
		alone += componentAccessNs * l.Accesses
		shared -= min(l.Stalls, 1) * stallNs
	}
	if !whole {
		shared += splitOpNs * l.Ops
		path = l.Shape.Share(l.Shape.Strata) * (workNs + splitOpNs)
		if s.explore != ns || s.unit == byChain {
			alone += unitOpNs * l.Ops
		}
		// What ran on a version of a transaction that aborts afterwards runs again.
		redone := l.Aborted * min(1, 2*l.Shape.Share(l.Shape.ChainLenMax)*l.Ops)
		if s.lazy {
			redone *= 1.5
		}
		shared += redone * (work + resetNs)
	}
	if s.unit == byChain {
		path = max(path, l.Shape.Share(l.Shape.ChainLenMax)*(workNs+splitOpNs))
	}
	if s.explore == bfs {
		alone += l.Shape.Share(l.Shape.Strata) * barrierNs
	}
	return alone + max(shared/workers, path)
}
