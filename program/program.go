package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/work"
	"github.com/heddle-stream/heddle/storage/spill"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// Program is an application with its input.
type Program struct {
	Name  string
	About string // one line
	// ReadsInput tells that the program can read a file instead of what is built in.
	ReadsInput bool
	// Params are the program's own flags.
	Params []Param
	// Events is how many events it makes by default; 0 for all of its input.
	Events int
	// New makes an instance from the flags: a fresh application in its initial
	// state, with its source.
	New func(c *Config) (*Instance, error)
}

// Title returns the name of the program and what it is about.
func (p Program) Title() string { return p.Name + ": " + p.About }

// Param is a flag of a program.
type Param struct {
	Name    string
	Usage   string
	Default string
	Kind    Kind
	// Min and Max bound numbers, when Max is not 0.
	Min, Max float64
	// OneOf lists what a text may be; nil allows any.
	OneOf []string
}

// Kind is the type of a parameter's value.
type Kind uint8

// The kinds of parameters.
const (
	Int Kind = iota
	Float
	Duration
	Text
)

// String returns the kind as usage messages show it.
func (k Kind) String() string { return [...]string{"int", "float", "duration", "text"}[k] }

// Complexity is the parameter that many programs share: work per operation.
var Complexity = Param{Name: "complexity", Kind: Duration, Default: "0s", Usage: "work per operation, as a duration on an idle core"}

// Instance is an application ready to run once.
type Instance struct {
	App    *txn.App
	Source txn.Source
	// Total is the number of events that the source will deliver, 0 if unknown.
	Total int
	// Check, if set, tells what must hold after a run but does not.
	Check func() error
	// Score, if set, tells of the byte form of a result how much of what it should be right about it is right about.
	Score func(result []byte) (right, of int)
	// Pace, if set, makes of a rate how many events have arrived so many seconds after the start, where that is not the rate
	// times the seconds.
	Pace func(rate float64) func(seconds float64) float64
	// Loops are hand-written serial loops over the same events that do the same
	// work without any engine. The first one, over Go maps, is the yardstick.
	Loops []Loop
	// Notes tells what the input was like, for people: a line each.
	Notes []string
	// Close, if set, releases the source.
	Close func() error
}

// Loop is a serial program. Prepare makes its initial state, run does the work.
type Loop struct {
	Name    string
	Prepare func() (run func())
}

// Config is what an instance is made from.
type Config struct {
	Events int // number of events wanted; 0 for the default
	Seed   uint64
	Input  string // file to read instead of the built-in input, or ""
	// MemoryLimit is about what the process may take, in bytes, and SpillDir where rows are
	// that do not fit, see package storage/spill; 0 for no limit.
	MemoryLimit int64
	SpillDir    string

	values map[string]string
	params []Param
}

// Make makes an instance from a configuration. Its application keeps to the limit of
// memory from the first row on that is loaded.
func (p *Program) Make(c *Config) (in *Instance, err error) {
	if c.MemoryLimit > 0 {
		var failed error
		defer txn.OnNew(func(app *txn.App) {
			failed = errors.Join(failed, spill.Limit(app, c.MemoryLimit, vfs.Disk{}, c.SpillDir))
		})()
		defer func() { err = errors.Join(err, failed) }()
	}
	return p.New(c)
}

// ParamError tells of a value that is not allowed.
type ParamError struct {
	Param, Value, Allowed string
}

func (e *ParamError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("--%s: %s", e.Param, e.Allowed)
	}
	return fmt.Sprintf("--%s %s: %s", e.Param, e.Value, e.Allowed)
}

// Config returns a configuration with the program's defaults and the given
// values, all of them checked.
func (p *Program) Config(values map[string]string) (*Config, error) {
	c := &Config{Events: p.Events, Seed: 1, values: map[string]string{}, params: p.Params}
	for _, param := range p.Params {
		c.values[param.Name] = param.Default
	}
	var errs []error
	for _, name := range sortedKeys(values) {
		param, ok := p.param(name)
		if !ok {
			errs = append(errs, &ParamError{name, values[name], p.Name + " has no such flag"})
			continue
		}
		if err := param.check(values[name]); err != nil {
			errs = append(errs, err)
			continue
		}
		c.values[name] = values[name]
	}
	return c, errors.Join(errs...)
}

func (p *Program) param(name string) (Param, bool) {
	for _, param := range p.Params {
		if param.Name == name {
			return param, true
		}
	}
	return Param{}, false
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (p Param) check(value string) error {
	var number float64
	var err error
	switch p.Kind {
	case Int:
		var n int64
		n, err = strconv.ParseInt(value, 10, 64)
		number = float64(n)
	case Float:
		number, err = strconv.ParseFloat(value, 64)
	case Duration:
		var d time.Duration
		if d, err = time.ParseDuration(value); err == nil {
			_, err = work.For(d)
		}
	case Text:
		if p.OneOf != nil && !slices.Contains(p.OneOf, value) {
			return &ParamError{p.Name, value, p.allowed()}
		}
	}
	if err != nil || p.Max != 0 && !(number >= p.Min && number <= p.Max) {
		return &ParamError{p.Name, value, p.allowed()}
	}
	return nil
}

func (p Param) allowed() string {
	switch {
	case p.Kind == Duration:
		return "a duration from 0s to 1s is allowed, such as 10us"
	case p.OneOf != nil:
		return "one of " + strings.Join(p.OneOf, ", ") + " is allowed"
	case p.Max != 0:
		return fmt.Sprintf("%s from %s to %s is allowed", article(p.Kind), number(p.Min), number(p.Max))
	default:
		return article(p.Kind) + " is allowed"
	}
}

func article(k Kind) string {
	if k == Int {
		return "an int"
	}
	return "a " + k.String()
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Int returns the value of an int parameter. Like the other getters it panics
// when the program has no such parameter.
func (c *Config) Int(name string) int {
	n, err := strconv.ParseInt(c.value(name), 10, 64)
	if err != nil {
		panic("parameter " + name + ": " + err.Error())
	}
	return int(n)
}

// Float returns the value of a float parameter.
func (c *Config) Float(name string) float64 {
	f, err := strconv.ParseFloat(c.value(name), 64)
	if err != nil {
		panic("parameter " + name + ": " + err.Error())
	}
	return f
}

// Has reports whether the program has a parameter of that name.
func (c *Config) Has(name string) bool {
	_, ok := c.values[name]
	return ok
}

// Text returns the value of a parameter as it was given.
func (c *Config) Text(name string) string { return c.value(name) }

// Cost returns the work of a duration parameter.
func (c *Config) Cost(name string) Cost {
	d, err := time.ParseDuration(c.value(name))
	if err != nil {
		panic("parameter " + name + ": " + err.Error())
	}
	n, err := work.For(d)
	if err != nil {
		panic("parameter " + name + ": " + err.Error())
	}
	return Cost{n}
}

func (c *Config) value(name string) string {
	v, ok := c.values[name]
	if !ok {
		panic("no parameter " + name)
	}
	return v
}

// Values returns all parameters as "name=value", sorted.
func (c *Config) Values() string {
	var out []string
	for _, k := range sortedKeys(c.values) {
		out = append(out, k+"="+c.values[k])
	}
	return strings.Join(out, " ")
}

// Cost is work that an operation spends.
type Cost struct{ n work.Iterations }

// Spend works, unless the serial model runs the operation: that is about values.
func (w Cost) Spend(c txn.Ctx) {
	if w.n != 0 && !c.Modelled() {
		_ = work.Do(w.n)
	}
}

// SpendTimes works as n operations do, for hand-written loops.
func (w Cost) SpendTimes(n int) {
	if w.n != 0 {
		for range n {
			_ = work.Do(w.n)
		}
	}
}

// Generated returns a source of n generated events: push pushes the next one.
func Generated(n int, push func(f *txn.Feed)) txn.Source {
	return txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range min(limit, n) {
			push(f)
		}
		if n -= min(limit, n); n == 0 {
			return io.EOF
		}
		return nil
	})
}

// Iterations returns the work per operation, 0 for a program without the
// parameter of [Complexity].
func (c *Config) Iterations() work.Iterations {
	for _, p := range c.params {
		if p.Name == Complexity.Name {
			return c.Cost(p.Name).n
		}
	}
	return 0
}
