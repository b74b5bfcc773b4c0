package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/bench/peers/peers"
)

func TestPrintsEveryPeer(t *testing.T) {
	args := []string{"--events", "500", "--keys", "50", "--reps", "1", "--abort", "20", "--skew", "0.5", "--deposit", "30", "--seed", "3"}
	var text, data, errs bytes.Buffer
	if status := run(t.Context(), args, &text, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	if status := run(t.Context(), append(args, "--json"), &data, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	var got struct {
		Params peers.Params
		Rows   []peers.Row
	}
	if err := json.Unmarshal(data.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if want := (peers.Params{Events: 500, Keys: 50, Skew: 0.5, Abort: 20, Deposit: 30, Seed: 3}); got.Params != want {
		t.Errorf("parameters %+v", got.Params)
	}
	for i, p := range peers.All() {
		if !strings.Contains(text.String(), p.Name) || got.Rows[i].Peer != p.Name || got.Rows[i].Median <= 0 {
			t.Errorf("%s: %+v", p.Name, got.Rows[i])
		}
	}
}

func TestRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{
		{"--events", "0"}, {"--keys", "1"}, {"--reps", "0"}, {"--abort", "101"}, {"--no-such"}, {"word"},
	} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), args, &out, &errs); status != misuse || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("%v: status %d, %q, %q", args, status, out.String(), errs.String())
		}
	}
}
