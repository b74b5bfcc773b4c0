package sim

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/workloads/bikeshare"
	"github.com/heddle-stream/heddle/workloads/eth"
	"github.com/heddle-stream/heddle/workloads/gs"
	"github.com/heddle-stream/heddle/workloads/ob"
	"github.com/heddle-stream/heddle/workloads/osed"
	"github.com/heddle-stream/heddle/workloads/retail"
	"github.com/heddle-stream/heddle/workloads/sl"
	"github.com/heddle-stream/heddle/workloads/smallbank"
	"github.com/heddle-stream/heddle/workloads/stock"
	"github.com/heddle-stream/heddle/workloads/tp"
	"github.com/heddle-stream/heddle/workloads/tpcc"
	"github.com/heddle-stream/heddle/workloads/ycsb"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// ants starts a pool of its own at import, which nobody asked for.
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func workloads() []Workload {
	return []Workload{
		{sl.Program, map[string]string{"keys": "12", "abort": "30"}, 150},
		{sl.Program, map[string]string{"keys": "40", "fee": "merge"}, 150},
		{gs.Program, map[string]string{"keys": "40"}, 120},
		{gs.NonDet, map[string]string{"keys": "40", "nondet": "40"}, 100},
		{gs.Windowed, map[string]string{"keys": "40", "length": "10"}, 100},
		{tp.Program, nil, 150},
		{ob.Program, nil, 150},
		{smallbank.Program, nil, 120},
		{ycsb.Program, map[string]string{"keys": "50"}, 80},
		{tpcc.Program, nil, 40},
		{osed.Program, nil, 120},
		{stock.Program, nil, 150},
		{sl.Dynamic, map[string]string{"keys": "40"}, 150},
		// On real data. Two of them read all of their samples in each life.
		{eth.Program, nil, 120},
		{bikeshare.Program, nil, 150},
		{retail.Program, nil, 30},
	}
}

// cast returns the workloads that a seed may draw from: those that take long get one seed
// in sixteen.
func cast(seed uint64, all []Workload) []Workload {
	const long = 2
	if seed%16 == 15 {
		return all[len(all)-long:]
	}
	return all[:len(all)-long]
}

// TestCrash lives through stories of all workloads under all schemes. HEDDLE_SIM=N tells
// the story of one seed again.
func TestCrash(t *testing.T) {
	all := workloads()
	want := make([]Ending, len(all))
	for i := range all {
		var err error
		if want[i], err = all[i].Expected(); err != nil {
			t.Fatalf("%s: %v", all[i].Program.Name, err)
		}
	}
	from, n := uint64(0), uint64(metamorphic.Seeds(600))
	if testing.Short() {
		n = 150
	}
	if one, err := strconv.ParseUint(os.Getenv("HEDDLE_SIM"), 10, 64); err == nil {
		from, n = one, 1
	}
	crashes, schemes, lived := 0, map[engine.Scheme]int{}, map[string]int{}
	for seed := from; seed < from+n; seed++ {
		s := Draw(seed, cast(seed, all))
		schemes[s.Scheme]++
		lived[s.Workload.Program.Name]++
		got, times, err := s.Live()
		crashes += times
		if expected := want[index(all, s.Workload)]; err != nil || got != expected {
			t.Fatalf("%s, last under %s: %v\n got %v\nwant %v\nagain: HEDDLE_SIM=%d go test ./internal/sim -run TestCrash", s.Workload.Program.Name, s.Scheme, err, got, expected, seed)
		}
	}
	if n > 1 && (crashes < int(n)/2 || len(schemes) < len(engine.Schemes()) || len(lived) < 14) {
		t.Errorf("%d crashes in %d stories, schemes %v, workloads %v", crashes, n, schemes, lived)
	}
	t.Logf("%d crashes in %d stories", crashes, n)
}

func index(all []Workload, one *Workload) int {
	for i := range all {
		if &all[i] == one {
			return i
		}
	}
	return -1
}

// A seed tells the same story each time.
func TestStoriesRepeat(t *testing.T) {
	all := workloads()
	for seed := range uint64(10) {
		a, n, err := Draw(seed, all).Live()
		b, m, again := Draw(seed, all).Live()
		if a != b || n != m || err != nil || again != nil {
			t.Fatalf("seed %d: %v after %d crashes (%v), then %v after %d (%v)", seed, a, n, err, b, m, again)
		}
	}
}
