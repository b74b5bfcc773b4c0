package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/heddle-stream/heddle/reconfig"
)

// requestMax is the most bytes of a request: moves of all groups take a quarter of it.
const requestMax = 1 << 20

// Handler lets a job be asked over HTTP:
//
//	GET  /v1/status            the reports of all requests, the oldest first
//	POST /v1/requests          a reconfig.Request; answers with its report when it has ended
//	POST /v1/abort?name=NAME   ends the request of a name, or without one that under way
//
// All answers are JSON; one that is an error has a field "error" and status 400, for what cannot be done 409, and 503
// when the job is over.
func (j *Job) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		reports := j.Status()
		if reports == nil {
			answer(w, http.StatusServiceUnavailable, failure{errOver.Error()})
			return
		}
		answer(w, http.StatusOK, reports)
	})
	mux.HandleFunc("POST /v1/requests", func(w http.ResponseWriter, r *http.Request) {
		var q reconfig.Request
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestMax))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			answer(w, http.StatusBadRequest, failure{"request: " + err.Error()})
			return
		}
		if err := q.Validate(); err != nil {
			answer(w, http.StatusBadRequest, failure{err.Error()})
			return
		}
		select {
		case report := <-j.Ask(q):
			status := http.StatusOK
			if report.State == Refused {
				status = http.StatusConflict
			}
			answer(w, status, report)
		case <-r.Context().Done(): // it goes on, but nobody waits for it
		}
	})
	mux.HandleFunc("POST /v1/abort", func(w http.ResponseWriter, r *http.Request) {
		j.Abort(r.URL.Query().Get("name"))
		answer(w, http.StatusOK, struct{}{})
	})
	return mux
}

type failure struct {
	Error string `json:"error"`
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who asked may be gone
}

// Client asks a job over HTTP, see [Job.Handler]. Any goroutine.
type Client struct {
	URL string // such as http://127.0.0.1:8520
}

// Status returns the reports of all requests, the oldest first.
func (c Client) Status(ctx context.Context) (reports []Report, err error) {
	return reports, c.do(ctx, http.MethodGet, "/v1/status", nil, &reports)
}

// Ask asks for a change and returns its report when it has ended. What the job refuses is an error.
func (c Client) Ask(ctx context.Context, q reconfig.Request) (r Report, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	return r, c.do(ctx, http.MethodPost, "/v1/requests", body, &r)
}

// Abort ends the request of a name, or for "" the one under way.
func (c Client) Abort(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, "/v1/abort?name="+url.QueryEscape(name), nil, &struct{}{})
}

// do sends a request and reads the answer into v.
func (c Client) do(ctx context.Context, method, path string, body []byte, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	if resp.StatusCode == http.StatusOK {
		return d.Decode(v)
	}
	var f failure
	if err := d.Decode(&f); err != nil || f.Error == "" {
		return fmt.Errorf("%s%s: %s", c.URL, path, resp.Status)
	}
	return errors.New(f.Error)
}
