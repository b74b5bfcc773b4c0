package txn

import (
	"fmt"
	"slices"
)

// Logic is a part of an application that can be exchanged while it runs: a rule, a limit, a model, or the function
// that an operation or a plan calls. It has variants with names, one of which holds. All events of a batch
// see the same one, and no event sees two. The first variant holds at the start.
type Logic[T any] struct {
	now      T
	name     string
	current  int
	variants []Variant[T]
}

// Variant is one that a [Logic] can have.
type Variant[T any] struct {
	Name  string
	Value T // nobody may change what it refers to
}

// logic is a Logic of any type.
type logic interface {
	label() (name, variant string)
	list() []string
	set(variant string) bool
}

// NewLogic declares a logic. Names are unique among the logics of an application, and those of variants in a logic.
func NewLogic[T any](a *App, name string, variants ...Variant[T]) *Logic[T] {
	where := caller()
	a.declare("logic", name, where)
	l := &Logic[T]{name: name, variants: variants}
	if len(variants) == 0 {
		a.fault(where, "logic %q has no variant", name)
		return l
	}
	for i, v := range variants {
		if v.Name == "" || slices.Index(l.list(), v.Name) != i {
			a.fault(where, "logic %q has two variants %q, or one without a name", name, v.Name)
		}
	}
	l.now = variants[0].Value
	a.logics = append(a.logics, l)
	return l
}

// Now returns what holds. Plans, operations and results may call it, on any goroutine; it is a read of memory.
func (l *Logic[T]) Now() T { return l.now }

func (l *Logic[T]) label() (name, variant string) { return l.name, l.variants[l.current].Name }

func (l *Logic[T]) list() (names []string) {
	for _, v := range l.variants {
		names = append(names, v.Name)
	}
	return names
}

func (l *Logic[T]) set(variant string) bool {
	i := slices.Index(l.list(), variant)
	if i >= 0 {
		l.current, l.now = i, l.variants[i].Value
	}
	return i >= 0
}

// Logic returns the variant that holds of each logic, by its name.
func (a *App) Logic() map[string]string {
	all := make(map[string]string, len(a.logics))
	for _, l := range a.logics {
		name, variant := l.label()
		all[name] = variant
	}
	return all
}

// HasLogic reports what is wrong with a variant of a logic, or nil.
func (a *App) HasLogic(name, variant string) error {
	var names []string
	for _, l := range a.logics {
		n, _ := l.label()
		if names = append(names, n); n != name {
			continue
		}
		if list := l.list(); !slices.Contains(list, variant) {
			return fmt.Errorf("logic %q has no variant %q: one of %v", name, variant, list)
		}
		return nil
	}
	if names == nil {
		return fmt.Errorf("no logic %q: application %q has none", name, a.name)
	}
	return fmt.Errorf("no logic %q: one of %v", name, names)
}

// SetLogic makes another variant of a logic hold. Between batches: who runs the application sees to it that nothing of
// the batch before is under way any more.
func (a *App) SetLogic(name, variant string) error {
	if err := a.HasLogic(name, variant); err != nil {
		return err
	}
	for _, l := range a.logics {
		if n, _ := l.label(); n == name {
			l.set(variant)
		}
	}
	return nil
}
