package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/job"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/tpg"
	"github.com/heddle-stream/heddle/trace"
)

// inspection is what the inspect command was asked for.
type inspection struct {
	batch          int
	dot, svg, text string
	limit          int
	json           bool
	drawsOnly      bool // standard output has a drawing and nothing else
}

func (e *env) inspectCommand() *cobra.Command {
	var in inspection
	c := &cobra.Command{
		Use: "inspect TRACE|STATEDIR", Short: "Show the batches of a trace and their graphs, or what a state directory keeps",
		Long: "Show the batches of a trace with statistics of their task precedence graphs.\nWith --batch N and --dot, --svg or --text FILE draw one batch's graph; - is standard output.\nOf a state directory: whose state it keeps, its checkpoint, and the log behind it.",
		Args: oneArg("a trace or a state directory"),
	}
	fs := c.Flags()
	fs.IntVar(&in.batch, "batch", -1, "show this batch only, counted from 0")
	fs.StringVar(&in.dot, "dot", "", "write the graph of --batch in Graphviz's language")
	fs.StringVar(&in.svg, "svg", "", "write the graph of --batch as a picture")
	fs.StringVar(&in.text, "text", "", "write the graph of --batch as text")
	fs.IntVar(&in.limit, "limit", 40, "events of the batch to draw")
	fs.BoolVar(&in.json, "json", false, "print a JSON object for each batch on standard output")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if in.batch < 0 && in.dot+in.svg+in.text != "" {
			return usagef("--dot, --svg and --text draw one batch: say which with --batch")
		}
		if err := in.check(fs.Changed("batch")); err != nil {
			return err
		}
		if stat, err := os.Stat(args[0]); err == nil && stat.IsDir() {
			if fs.Changed("batch") || fs.Changed("dot") || fs.Changed("svg") || fs.Changed("text") {
				return usagef("--batch, --dot, --svg and --text are about a trace; %s is a directory", args[0])
			}
			return e.inspectState(args[0], in.json)
		}
		t, p, done, err := e.openTrace(args[0])
		if err != nil {
			return err
		}
		defer done()
		return usageIfCorrupt(e.inspect(t, p, in))
	}
	return c
}

// check refuses what would mix on standard output, and what means nothing.
func (in *inspection) check(batch bool) error {
	out := 0
	for _, file := range []string{in.dot, in.svg, in.text} {
		if file == "-" {
			out++
		}
	}
	in.drawsOnly = out > 0
	switch {
	case out > 1 || out == 1 && in.json:
		return usagef("only one of --dot, --svg, --text and --json can have standard output")
	case batch && in.batch < 0:
		return usagef("--batch %d: 0 or more is allowed", in.batch)
	case in.limit < 1:
		return usagef("--limit %d: 1 or more is allowed", in.limit)
	}
	return nil
}

// inspectState prints what a state directory keeps.
func (e *env) inspectState(dir string, asJSON bool) error {
	info, err := checkpoint.Look(vfs.Disk{}, dir)
	if errors.Is(err, fs.ErrNotExist) {
		kept, failed := job.Look(vfs.Disk{}, dir)
		switch {
		case errors.Is(failed, fs.ErrNotExist):
			return usageError{err}
		case failed != nil:
			return failed
		}
		return e.printKept(kept, asJSON)
	}
	if err != nil {
		return err
	}
	p := info.Point
	text := fmt.Sprintf("state of %s, tables %v, events %v\n", info.Identity["workload"], info.Tables, info.EventTypes)
	if len(info.Files) == 0 {
		text += "no checkpoint yet\n"
	} else {
		text += fmt.Sprintf("%v: %d bytes, %d events (%d committed, %d aborted), %d bytes of output\n", info.Files, info.Bytes, p.Events, p.Committed, p.Aborted, p.Output)
	}
	if len(info.Savepoints) > 0 {
		text += fmt.Sprintf("savepoints: %v\n", info.Savepoints)
	}
	text += fmt.Sprintf("log: %d events in %d batches behind it, %d bytes\n", info.Events, info.Batches, info.LogBytes)
	return e.print(info, text, asJSON)
}

// printKept prints what the state directory of a job keeps.
func (e *env) printKept(k job.Kept, asJSON bool) error {
	text := fmt.Sprintf("state of %s after %d events in %d batches, %d files of windows\n", k.Identity["job"], k.Events, k.Batches, k.Files)
	for _, id := range slices.Sorted(maps.Keys(k.Bytes)) {
		text += fmt.Sprintf("%s: %d bytes\n", id, k.Bytes[id])
	}
	return e.print(k, text, asJSON)
}

// batchStats is a line about a batch.
type batchStats struct {
	Batch int `json:"batch"`
	tpg.Stats
}

// instanceOf makes an instance of the program with the recorded parameters.
func instanceOf(p *program.Program, h trace.Header) (*program.Instance, error) {
	config, err := p.Config(h.Params)
	if err != nil {
		return nil, err
	}
	config.Seed = h.Seed
	return p.New(config)
}

func (e *env) inspect(t *trace.Reader, p *program.Program, in inspection) error {
	instance, err := instanceOf(p, t.Header)
	if err != nil {
		return err
	}
	if err := replayed(t, false)(instance); err != nil {
		return err
	}
	inspector, err := engine.NewInspector(instance.App)
	if err != nil {
		return err
	}
	if !in.json && !in.drawsOnly {
		e.printf("trace of %s, seed %d, parameters %v\n", t.Header.Program, t.Header.Seed, t.Header.Params)
		e.printf("%6s %8s %10s %8s %8s %9s %10s %8s %7s\n", "batch", "events", "operations", "reads", "chains", "temporal", "parametric", "strata", "longest")
	}
	feed := instance.App.NewFeed()
	found := false
	for batch := 0; ; batch++ {
		if err := e.ctx.Err(); err != nil {
			return err
		}
		feed.Reset()
		err := t.Batch(feed)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if in.batch >= 0 && in.batch != batch {
			continue
		}
		found = true
		g, names := inspector.Graph(feed)
		if !in.drawsOnly {
			if err := e.showBatch(batch, g, in.json); err != nil {
				return err
			}
		}
		if in.batch >= 0 {
			return e.drawBatch(g, names, in)
		}
	}
	if in.batch >= 0 && !found {
		return usagef("--batch %d: the trace has %d batches", in.batch, t.Footer.Batches)
	}
	if !in.json && e.ctx.Err() == nil {
		e.printf("%d events; state hash %s, results hash %s\n", t.Footer.Events, t.Footer.StateHash, t.Footer.ResultsHash)
	}
	return nil
}

func (e *env) showBatch(batch int, g *tpg.Graph, asJSON bool) error {
	s := batchStats{batch, g.Stats()}
	if asJSON {
		return json.NewEncoder(e.out).Encode(s)
	}
	e.printf("%6d %8d %10d %8d %8d %9d %10d %8d %7d\n", batch, s.Events, s.Operations, s.Reads, s.Chains, s.Temporal, s.Parametric, s.Strata, s.ChainLenMax)
	return nil
}

func (e *env) drawBatch(g *tpg.Graph, names tpg.Names, in inspection) error {
	for _, d := range []struct {
		file string
		draw func(io.Writer) error
	}{
		{in.dot, func(w io.Writer) error { return g.DOT(w, names, in.limit) }},
		{in.svg, func(w io.Writer) error { return g.SVG(w, names, in.limit) }},
		{in.text, func(w io.Writer) error { return g.Dump(w, names) }},
	} {
		if d.file == "" {
			continue
		}
		if err := e.writeTo(d.file, d.draw); err != nil {
			return fmt.Errorf("writing %s: %w", d.file, err)
		}
	}
	return nil
}

func (e *env) writeTo(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(e.out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
