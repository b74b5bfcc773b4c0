package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/bench/peers/peers"
)

// flowkv compares stores of windows.
func flowkv(ctx context.Context, args []string, out, errs io.Writer) int {
	names, stores := peers.WindowStores()
	flags := flag.NewFlagSet("peers flowkv", flag.ContinueOnError)
	flags.SetOutput(errs)
	scale := flags.String("scale", "small", "small or full")
	only := flags.String("stores", strings.Join(names, ","), "`names` of stores, separated by commas")
	asJSON := flags.Bool("json", false, "print a line of JSON for each")
	cold := flags.Bool("cold", false, "drop what is written from the page cache, four times a second")
	if err := flags.Parse(args); err != nil {
		return misuse
	}
	s, err := bench.ScaleNamed(*scale)
	if *cold {
		for name, open := range stores {
			stores[name] = peers.Cold(open)
		}
	}
	names = strings.Split(*only, ",")
	for _, name := range names {
		if stores[name] == nil {
			err = fmt.Errorf("--stores %s: there is no store %q", *only, name)
		}
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q: there are only flags", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errs, "peers:", err)
		return misuse
	}
	s.Reps = 1 // general stores take long
	err = bench.RunFlow(ctx, s, names, stores, nil, func(r bench.FlowRun) error {
		if *asJSON {
			return json.NewEncoder(out).Encode(r)
		}
		written := "does not tell what it wrote"
		if r.Amplification > 0 {
			written = fmt.Sprintf("written %5.2f times", r.Amplification)
		}
		_, err := fmt.Fprintf(out, "%-34s %-14s %10.0f/s  %s\n", r.Trace, r.Store, r.StepsPerSecond, written)
		return err
	})
	if err != nil {
		fmt.Fprintln(errs, "peers:", err)
		return failed
	}
	return 0
}

// queries compares what is below the operators of whole queries.
func queries(ctx context.Context, args []string, out, errs io.Writer) int {
	var p peers.QueryParams
	flags := flag.NewFlagSet("peers queries", flag.ContinueOnError)
	flags.SetOutput(errs)
	names := flags.String("query", peers.WindowQueries, "queries of NEXMark, separated by commas")
	flags.IntVar(&p.Events, "events", 4_000_000, "`number` of events")
	flags.IntVar(&p.Rate, "rate", 200_000, "events per second of event time")
	flags.IntVar(&p.Reps, "reps", 3, "`number` of interleaved repetitions, of which the fastest counts")
	asJSON := flags.Bool("json", false, "print a line of JSON for each")
	if err := flags.Parse(args); err != nil {
		return misuse
	}
	if p.Events < 1 || p.Rate < 1 || p.Reps < 1 || flags.NArg() > 0 {
		fmt.Fprintln(errs, "peers: --events, --rate and --reps are at least 1, and there are only flags")
		return misuse
	}
	if !*asJSON {
		fmt.Fprintf(out, "%-12s %10s %10s %14s %14s %8s %10s\n", "query", "state MiB", "limit MiB", "heddle/s", "pebble/s", "ratio", "over loop")
	}
	err := peers.CompareQueries(ctx, *names, p, func(r peers.QueryRun) error {
		if *asJSON {
			return json.NewEncoder(out).Encode(r)
		}
		_, err := fmt.Fprintf(out, "%-12s %10.1f %10.1f %14.0f %14.0f %7.2fx %9.2fx\n", r.Query, float64(r.StateBytes)/(1<<20), float64(r.LimitBytes)/(1<<20), r.HeddlePerSec, r.PebblePerSec, r.Ratio, r.LoopRatio)
		return err
	})
	if err != nil {
		fmt.Fprintln(errs, "peers:", err)
		return failed
	}
	return 0
}
