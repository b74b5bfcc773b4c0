package job_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/plan"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/window"
)

// adapting is a pass at run time.
type adapting struct {
	sets []plan.PropID
	do   func(v *plan.View, m plan.Measured) error
}

func (adapting) Name() string                                { return "adapting" }
func (adapting) Needs() []plan.PropID                        { return nil }
func (p adapting) Sets() []plan.PropID                       { return p.sets }
func (p adapting) Adapt(v *plan.View, m plan.Measured) error { return p.do(v, m) }

// Batches that change while a job runs change nothing of what comes.
func TestBatchesThatChange(t *testing.T) {
	items := draw(4, 3000)
	var want []string
	if _, err := job.Run(context.Background(), shop(t, items, &want), job.Options{}); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) {
		r := rng.New(seed, 12)
		asked, events, sizes := 0, int64(0), map[int]bool{}
		p := adapting{[]plan.PropID{plan.BatchSize}, func(v *plan.View, m plan.Measured) error {
			asked++
			if events += m.Events; m.Batches == 0 || m.Nanos <= 0 {
				t.Errorf("%+v was measured", m)
			}
			sizes[int(m.Events/m.Batches)] = true
			return plan.BatchSize.Set(v, "in", 1+r.IntN(100))
		}}
		var got []string
		o := job.Options{Workers: 2, Passes: append(job.Passes(), plan.Pass(smallFirst{})), Runtime: []plan.Adaptor{p}, Env: operators.Env{FS: &vfs.Memory{}, Dir: "w", MemoryLimit: 1 << 20}}
		m, err := job.Run(context.Background(), shop(t, items, &got), o)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s, %v", seed, firstDifference(got, want), err)
		}
		if asked < 3 || len(sizes) < 3 || events > m.Events || events < m.Events/2 {
			t.Errorf("asked %d times, about batches of %v, %d events of %d", asked, sizes, events, m.Events)
		}
	}
}

// smallFirst lets a job begin with small batches, without fixing them.
type smallFirst struct{}

func (smallFirst) Name() string         { return "small first" }
func (smallFirst) Needs() []plan.PropID { return nil }
func (smallFirst) Sets() []plan.PropID  { return []plan.PropID{plan.BatchSize} }
func (smallFirst) Annotate(v *plan.View) error {
	return plan.BatchSize.Set(v, "in", 20)
}

// Strategies of transactions that are asked for, and ones that change while a job runs, change nothing of what comes.
func TestStrategiesThatChange(t *testing.T) {
	items := draw(4, 800)
	names := []string{"serial", "ns-op-eager", "bfs-chain-lazy", "lock", "auto"}
	want, _, err := newDepot(t, items).live(&vfs.Memory{}, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(o job.Options) outcome {
		o.Passes = append(append(o.Passes, job.Passes()...), job.Batch(10))
		got, _, err := newDepot(t, items).live(&vfs.Memory{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if d := got.difference(&want); d != "" {
			t.Error(d)
		}
		return got
	}
	for _, name := range names[:4] {
		if got := run(job.Options{Passes: []plan.Pass{job.Strategy(name)}}); got.strategies[name] < 20 || len(got.strategies) != 1 {
			t.Errorf("%s: %v", name, got.strategies)
		}
	}
	r := rng.New(1, 14)
	got := run(job.Options{Runtime: []plan.Adaptor{adapting{[]plan.PropID{plan.Strategy}, func(v *plan.View, _ plan.Measured) error {
		return plan.Strategy.Set(v, "tally", names[r.IntN(len(names))])
	}}}})
	for _, name := range names[:4] {
		if got.strategies[name] == 0 {
			t.Errorf("%s was never in use: %v", name, got.strategies)
		}
	}
	wrong := adapting{[]plan.PropID{plan.Strategy}, func(v *plan.View, _ plan.Measured) error { return plan.Strategy.Set(v, "tally", "fast") }}
	_, _, err = newDepot(t, items).live(&vfs.Memory{}, job.Options{Runtime: []plan.Adaptor{wrong}, Passes: append(job.Passes(), job.Batch(10))})
	if err == nil || !strings.Contains(err.Error(), `tally: unknown strategy "fast"`) {
		t.Error(err)
	}
}

// What a running job cannot take is refused.
func TestPassAtRunTimeThatMayNot(t *testing.T) {
	p := adapting{[]plan.PropID{plan.Access}, func(v *plan.View, _ plan.Measured) error {
		return plan.Access.Set(v, "sum", plan.Aligned)
	}}
	var got []string
	_, err := job.Run(context.Background(), shop(t, draw(4, 600), &got), job.Options{Passes: append(job.Passes(), job.Batch(20)), Runtime: []plan.Adaptor{p}})
	if err == nil || !strings.Contains(err.Error(), "pass adapting changes what a running job cannot change") {
		t.Error(err)
	}
}

// Windows that are aggregated may be kept as lists: the same comes of them.
func TestStoreThatIsAskedFor(t *testing.T) {
	items := draw(4, 800)
	want, before, err := newDepot(t, items).live(&vfs.Memory{}, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked := []plan.Pass{job.Store("sum", plan.Aligned), job.Store("counts", plan.Unaligned), job.Store("panes", plan.Unaligned), job.Store("wide", plan.Aligned)}
	got, m, err := newDepot(t, items).live(&vfs.Memory{}, job.Options{Passes: append(asked, job.Passes()...)})
	if err != nil {
		t.Fatal(err)
	}
	if d := got.difference(&want); d != "" {
		t.Error(d)
	}
	if a := plan.Access.Of(m.Plan, "sum"); a != plan.Aligned || m.Stores["sum"].UserBytes == before.Stores["sum"].UserBytes {
		t.Errorf("access %s, %d bytes", a, m.Stores["sum"].UserBytes)
	}
	for vertex, by := range map[plan.ID]plan.AccessPattern{"wide": plan.AlignedRMW, "sum": plan.Unaligned, "long": plan.Aligned, "nobody": plan.Aligned} {
		_, _, err := newDepot(t, items).live(&vfs.Memory{}, job.Options{Passes: append([]plan.Pass{job.Store(vertex, by)}, job.Passes()...)})
		if err == nil || !strings.Contains(err.Error(), "there is no vertex "+string(vertex)+" whose windows can be kept for "+string(by)) {
			t.Errorf("%s by %s: %v", vertex, by, err)
		}
	}
}

// The pass that comes with jobs doubles batches as long as that pays, goes back when it does not, leaves
// alone what is fixed, and stays where it is at the largest size.
func TestBatchesThatPay(t *testing.T) {
	rounds := func(g *plan.Graph, speed func(batch int) int64, n int) (sizes []int) {
		p := job.RuntimePasses()[0]
		for range n {
			size := plan.BatchSize.Of(g, "in")
			next, err := plan.Adapt(g, p, plan.Measured{Batches: 6, Events: 1000 * speed(size), Nanos: 1000})
			if err != nil {
				t.Fatal(err)
			}
			g = next
			sizes = append(sizes, plan.BatchSize.Of(g, "in"))
		}
		return sizes
	}
	described := func(passes ...plan.Pass) *plan.Graph {
		policy, err := plan.NewPolicy(append(job.Passes(), passes...)...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		g, err := policy.Apply(shop(t, draw(1, 10), &got), nil)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	upTo := func(good int) func(int) int64 { return func(batch int) int64 { return int64(min(batch, good)) } }
	begin := plan.BatchSize.Default()
	if got, want := rounds(described(), upTo(2*begin), 5), []int{2 * begin, 4 * begin, 2 * begin, 2 * begin, 2 * begin}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got := rounds(described(), upTo(1<<30), 100)
	if largest := slices.Max(got); largest != 1<<17 || got[99] != largest || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
	if got := rounds(described(job.Batch(500)), upTo(1<<30), 10); slices.Max(got) != 500 || slices.Min(got) != 500 {
		t.Errorf("fixed: %v", got)
	}
}

// Contents of windows have the memory that there is for them, with what partial aggregation takes; what the stores need
// at least is told if there is less.
func TestMemoryOfWindows(t *testing.T) {
	for _, limit := range []int64{1, 64 << 20} {
		var got []string
		m, err := job.Run(context.Background(), shop(t, draw(4, 600), &got), job.Options{Env: operators.Env{MemoryLimit: limit}})
		if err != nil {
			t.Fatal(err)
		}
		partitions := int64(0)
		for vertex := range m.Stores {
			partitions += int64(plan.Parallelism.Of(m.Plan, vertex))
		}
		want := max(limit, partitions*window.LimitMin)
		if m.WindowLimit > want || m.WindowLimit < want*9/10 {
			t.Errorf("limit %d: contents of windows have %d, want %d", limit, m.WindowLimit, want)
		}
	}
}
