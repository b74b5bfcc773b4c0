package program_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/work"
	"github.com/heddle-stream/heddle/program"
)

var sample = program.Program{
	Name: "sample", Events: 7,
	Params: []program.Param{
		{Name: "keys", Kind: program.Int, Default: "10", Min: 1, Max: 100},
		{Name: "share", Kind: program.Float, Default: "0.5", Min: 0, Max: 1},
		{Name: "name", Kind: program.Text, Default: "x"},
		program.Complexity,
	},
}

func TestConfigChecksValues(t *testing.T) {
	c, err := sample.Config(map[string]string{"keys": "42", "complexity": "0s"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Int("keys") != 42 || c.Float("share") != 0.5 || c.Text("name") != "x" || c.Events != 7 || c.Iterations() != 0 {
		t.Errorf("%s, %d events", c.Values(), c.Events)
	}
	_, err = sample.Config(map[string]string{"keys": "101", "share": "NaN", "colour": "red", "complexity": "1h"})
	for _, want := range []string{"--keys 101: an int from 1 to 100", "--share NaN: a float from 0 to 1", "--colour red: sample has no such flag", "--complexity 1h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	var param *program.ParamError
	if !errors.As(err, &param) {
		t.Errorf("%T is no ParamError", err)
	}
}

// Work is proportional to what was asked for: the iterations of twice the time
// are about twice as many.
func TestWorkIsProportional(t *testing.T) {
	one, err := work.For(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := work.For(2 * time.Millisecond)
	if one < 1000 || two < 2*one-2 || two > 2*one+2 {
		t.Errorf("%d iterations for 1 ms, %d for 2 ms", one, two)
	}
	if work.Do(0) == work.Do(1) {
		t.Error("the work leaves no trace")
	}
}
