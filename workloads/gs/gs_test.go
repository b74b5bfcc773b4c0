package gs

import (
	"context"
	"testing"

	"github.com/heddle-stream/heddle/engine"
)

// The hand-written loops do what the engine does.
func TestLoopsReachTheEnginesState(t *testing.T) {
	c, err := Program.Config(map[string]string{"keys": "50", "abort": "20", "accesses": "5", "multiple": "70"})
	if err != nil {
		t.Fatal(err)
	}
	c.Events = 5000
	in, err := Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	overMaps, overSlots := map[uint32]int64{}, make([]int64, 50)
	for k := range overSlots {
		overMaps[uint32(k)], overSlots[k] = int64(k), int64(k)
	}
	overMap(list(c), overMaps, c.Cost("complexity"))
	overRows(list(c), func(k uint32) *int64 { return &overSlots[k] }, c.Cost("complexity"))
	in.App.Tables()[0].All(func(k, v any) bool {
		key, got := k.(uint32), v.(int64)
		if overMaps[key] != got || overSlots[key] != got {
			t.Errorf("values[%d]: the engine has %d, the loops %d and %d", key, got, overMaps[key], overSlots[key])
		}
		return !t.Failed()
	})
}
