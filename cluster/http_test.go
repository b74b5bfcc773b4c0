package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
)

func TestOverHTTP(t *testing.T) {
	const events = 20_000
	params := map[string]string{"keys": "500", "bytes": "10"}
	r := begin(t, events, params, cluster.JobOptions{Nodes: 1, Groups: 32})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	c, ctx := cluster.Client{URL: server.URL}, context.Background()
	rep, err := c.Ask(ctx, reconfig.Request{Name: "more", Nodes: 2})
	if err != nil || rep.State != cluster.Done || rep.GroupsMoved != 16 {
		t.Errorf("%+v, %v", rep, err)
	}
	again, err := c.Ask(ctx, reconfig.Request{Name: "more", Nodes: 2})
	if err != nil || again.CompletionMs != rep.CompletionMs {
		t.Errorf("a request that was done is done again: %+v, %v", again, err)
	}
	for _, bad := range []struct {
		request reconfig.Request
		says    string
	}{
		{reconfig.Request{Nodes: 100}, "1 to 64"},
		{reconfig.Request{Nodes: 40}, "40 nodes for 32 key groups"},
		{reconfig.Request{Migration: reconfig.Migration{Order: "x"}}, `order "x"`},
	} {
		if _, err := c.Ask(ctx, bad.request); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%+v: %v", bad.request, err)
		}
	}
	resp, err := server.Client().Post(server.URL+"/v1/requests", "application/json", strings.NewReader(`{"nodes": 2, "nodse": 3}`))
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a field that is none: %v, %v", resp, err)
	}
	resp.Body.Close()
	if err := c.Abort(ctx, "more"); err != nil { // it has ended: nothing happens
		t.Error(err)
	}
	all, err := c.Status(ctx)
	if err != nil || len(all) != 2 || all[0].State != cluster.Done || all[1].State != cluster.Refused {
		t.Errorf("%+v, %v", all, err)
	}
	r.end(events, params)
	if _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("after the end: %v", err)
	}
	if _, err := c.Ask(ctx, reconfig.Request{}); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("after the end: %v", err)
	}
}

// An abort of a request under way leaves what has moved where it is, and the rest; both go on.
func TestAbort(t *testing.T) {
	const events = 40_000
	params := map[string]string{"keys": "2000", "bytes": "100"}
	chunks := 0
	var j *cluster.Job
	o := cluster.JobOptions{Nodes: 2, Groups: 64, Changed: func(r cluster.Report) {
		if r.ChunksDone > chunks {
			if chunks = r.ChunksDone; chunks == 3 {
				j.Abort("")
			}
		}
	}}
	r := begin(t, events, params, o)
	j = r.Job
	rep := <-r.Ask(reconfig.Request{Nodes: 1, Migration: reconfig.Migration{Groups: 2, Ahead: true, Gap: 2}})
	if rep.State != cluster.Aborted || rep.GroupsMoved < 6 || rep.GroupsMoved >= 32 {
		t.Errorf("%s with %d groups moved", rep.State, rep.GroupsMoved)
	}
	if rep := r.do(reconfig.Request{Rebalance: true}); len(rep.Diff.Moves) == 0 {
		t.Error("nothing to balance after a half that moved")
	}
	r.end(events, params)
}

// I17: of a request that is ended while its nodes start nothing is left, these nodes neither.
func TestI17AbortWhileStarting(t *testing.T) {
	var j *cluster.Job
	r := begin(t, 10_000, nil, cluster.JobOptions{Groups: 16, Changed: func(rep cluster.Report) {
		if rep.State == cluster.Starting {
			j.Abort("")
		}
	}})
	j = r.Job
	if rep := <-r.Ask(reconfig.Request{Nodes: 3}); rep.State != cluster.Aborted || rep.GroupsMoved != 0 {
		t.Errorf("%s, %d groups moved", rep.State, rep.GroupsMoved)
	}
	rep := <-r.Ask(reconfig.Request{Moves: []reconfig.Move{{Group: 3, From: 0, To: 1}}})
	if rep.State != cluster.Refused || !strings.Contains(rep.Error, "there are [0]") {
		t.Errorf("a move to a node of the request that was ended: %s %s", rep.State, rep.Error)
	}
	r.end(10_000, nil)
}
