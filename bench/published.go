package bench

import (
	"fmt"
	"runtime"
	"strconv"
)

// Experiments returns all experiments: that of the engine's own targets, and the
// published ones of the systems that this one is compared with, scaled to the
// machine.
func Experiments() []Experiment {
	return []Experiment{
		{Name: "engine", About: "sl and gs from 10k to 1M keys, with and without work, beside hand-written loops", Points: enginePoints},
		{Name: "F10", About: "sl, 122,880 keys, 10 us of work: all kinds of strategies", Points: f10Points},
		{Name: "DYN", About: "sl in 13 phases, 8 us of work: auto against the best fixed strategy of each phase", Course: dynCourse, XName: "phase"},
		{Name: "DYN0", About: "the same with next to no work, where serial and parallel alternate as the best", Course: dyn0Course, XName: "phase"},
		{Name: "SCAL", About: "sl in 13 phases, 8 us of work, from one worker to all", Points: scalPoints, XName: "workers"},
		{Name: "NEST", About: "sl, half of the events among a few keys with aborts: by component and under one strategy", Points: nestPoints, XName: "work per operation"},
		{Name: "FEE", About: "sl, 1 us of work, with an account that all transfers change: ordered and commutative", Points: feePoints, XName: "fee account"},
		{Name: "GRAN-P", About: "gs, one access: chains or operations over the size of batches", Points: granPPoints, XName: "events per batch"},
		{Name: "GRAN-M", About: "gs, five accesses: chains or operations over the share of events that read other keys", Points: granMPoints, XName: "events with more than one key, %"},
		{Name: "GRAN-C", About: "gs, two accesses: chains or operations where chains wait for each other", Points: granCPoints, XName: "zipf exponent"},
		{Name: "EXPL-P", About: "gs, two accesses: explorations over the size of batches", Points: explPPoints, XName: "events per batch, zipf exponent"},
		{Name: "EXPL-S", About: "gs, two accesses: explorations over the skew", Points: explSPoints, XName: "zipf exponent"},
		{Name: "ABRT-A", About: "gs, two accesses: eager or lazy over the share of aborts", Points: abrtAPoints, XName: "aborts, %"},
		{Name: "ABRT-C", About: "gs, two accesses, half of the events abort: eager or lazy over the work", Points: abrtCPoints, XName: "work per operation"},
		{Name: "WIN", About: "gsw: windowed reads over the size of the window", Points: winPoints, XName: "events in the window"},
		{Name: "NDET", About: "gsnd: computed keys over their share", Points: ndetPoints, XName: "computed keys, %"},
		{Name: "OVER", About: "sl in 13 phases: where the time goes, and memory", Points: overPoints},
		{Name: "LAT", About: "sl at half of its peak in an open loop: latency against the linger", Course: latencyCourse},
		{Name: "recovery", About: "sl under each durability scheme: what it costs, and how long coming back from its log takes", Course: recoveryCourse, XName: "work per operation"},
		{Name: "ingest", About: "sl from files of events to a file of results, logged: throughput, and latency at half load and next to idle", Course: ingestCourse},
		{Name: "trace", About: "sl: bytes of a trace, and reading it by one core", Course: traceCourse},
		{Name: "checkpoint", About: "sl, 10 M rows: latencies while a checkpoint is written, and how fast it is loaded", Course: checkpointCourse},
		{Name: "steady", About: "sl: memory that a run holds beside its rows, and whether that grows", Course: steadyCourse},
		{Name: "flowkv", About: "stores of windows by access pattern, with more contents than memory; bench/peers has others beside", Course: flowCourse},
		{Name: "migration", About: "micro on nodes: groups of keys move while events come, in several ways; latencies, and how long it takes", Course: migrationCourse},
		{Name: "memory", About: "sl, 2 M rows, with less memory than they take: how throughput falls", Course: memoryCourse, XName: "memory limit, MiB"},
	}
}

// work returns how many events of a program take about as long as the scale's
// number takes without work.
func (s Scale) work(microsPerEvent float64) int {
	return max(8_000, int(float64(s.Events)/(1+4*microsPerEvent)))
}

func f10Points(s Scale) []Point {
	return []Point{{
		Name: "sl 122880 keys, 10us", Program: "sl", Events: max(40_000, s.work(35)), Batch: 20_480,
		Params:     map[string]string{"keys": "122880", "complexity": "10us", "deposit": "25"},
		Strategies: []string{"auto", "serial", "ns-op-eager", "ns-op-lazy", "tstream", "lock"},
	}}
}

func scalPoints(s Scale) []Point {
	var out []Point
	for w := 1; w <= runtime.GOMAXPROCS(0); w *= 2 {
		out = append(out, Point{
			Name: fmt.Sprintf("dynamic, %d workers", w), X: strconv.Itoa(w), Program: "dynamic", Events: max(13*2048, s.work(20)), Workers: w, Batch: 2048,
			Params: map[string]string{"complexity": "8us"}, Strategies: []string{"auto", "serial", "ns-op-eager", "tstream"},
		})
	}
	return out
}

func nestPoints(s Scale) []Point {
	var out []Point
	for _, work := range []string{"0s", "200ns", "1us", "5us"} {
		events := s.Events
		if work == "5us" {
			events /= 4
		}
		out = append(out, Point{
			Name: "sl, half on 8 keys with 15 % aborts, " + work, X: work, Program: "sl", Events: events / 2,
			Params:     map[string]string{"hot": "50", "hot-keys": "8", "hot-abort": "15", "complexity": work},
			Strategies: []string{"auto", "nested", "serial", "ns-op-eager", "ns-op-lazy", "ns-chain-eager", "lock", "tstream"},
		})
	}
	return out
}

func feePoints(s Scale) []Point {
	var out []Point
	for _, fee := range []string{"none", "update", "merge"} {
		out = append(out, Point{
			Name: "sl, 1us, fee " + fee, X: fee, Program: "sl", Events: s.work(4),
			Params: map[string]string{"fee": fee, "complexity": "1us", "deposit": "0"}, Strategies: []string{"auto", "serial", "ns-op-eager"},
		})
	}
	return out
}

// gsPoint is a point of the grep-and-sum experiments: 12,288 keys, no work.
func gsPoint(s Scale, name, x string, batch int, strategies []string, params map[string]string) Point {
	p := Point{Name: "gs 12288 keys, " + name, X: x, Program: "gs", Events: s.Events, Batch: batch, Strategies: strategies, Params: map[string]string{"keys": "12288"}}
	for k, v := range params {
		p.Params[k] = v
	}
	return p
}

var (
	byGranularity = []string{"serial", "ns-chain-eager", "ns-op-eager"}
	byExploration = []string{"serial", "bfs-op-lazy", "dfs-op-lazy", "ns-op-lazy"}
	sixLazy       = []string{"serial", "bfs-op-lazy", "dfs-op-lazy", "ns-op-lazy", "bfs-chain-lazy", "dfs-chain-lazy", "ns-chain-lazy"}
)

// batches are the published sizes with two workers instead of 24.
func batches(s Scale) []int {
	if s.Dense {
		return []int{10_240, 20_480, 40_960, 81_920, 163_840}
	}
	return []int{2_048, 10_240, 40_960}
}

func granPPoints(s Scale) []Point {
	var out []Point
	for _, b := range batches(s) {
		out = append(out, gsPoint(s, fmt.Sprintf("batches of %d", b), strconv.Itoa(b), b, byGranularity, map[string]string{"accesses": "1"}))
	}
	return out
}

func granMPoints(s Scale) []Point {
	var out []Point
	for _, m := range []string{"10", "30", "50", "70", "90"} {
		out = append(out, gsPoint(s, m+" % read others", m, 0, byGranularity, map[string]string{"accesses": "5", "multiple": m}))
	}
	return out
}

func granCPoints(s Scale) []Point {
	var out []Point
	for _, skew := range []string{"0", "0.5", "0.9"} {
		out = append(out, gsPoint(s, "skew "+skew, skew, 0, byGranularity, map[string]string{"accesses": "2", "skew": skew}))
	}
	return out
}

func explPPoints(s Scale) []Point {
	var out []Point
	for _, skew := range []string{"0", "0.75"} {
		for _, b := range batches(s) {
			out = append(out, gsPoint(s, fmt.Sprintf("skew %s, batches of %d", skew, b), fmt.Sprintf("%d, %s", b, skew), b, byExploration,
				map[string]string{"accesses": "2", "skew": skew}))
		}
	}
	return out
}

func explSPoints(s Scale) []Point {
	var out []Point
	for _, skew := range []string{"0", "0.25", "0.5", "0.75", "1"} {
		out = append(out, gsPoint(s, "skew "+skew, skew, 0, sixLazy, map[string]string{"accesses": "2", "skew": skew}))
	}
	return out
}

func abrtAPoints(s Scale) []Point {
	var out []Point
	for _, share := range []string{"0", "10", "30", "50", "70", "90"} {
		out = append(out, gsPoint(s, share+" % aborts", share, 0, []string{"serial", "ns-op-lazy", "ns-op-eager", "bfs-op-lazy", "bfs-op-eager"},
			map[string]string{"accesses": "2", "abort": share}))
	}
	return out
}

func abrtCPoints(s Scale) []Point {
	var out []Point
	for _, work := range []string{"0s", "10us", "20us", "40us", "100us"} {
		p := gsPoint(s, "50 % aborts, "+work, work, 0, []string{"serial", "ns-op-lazy", "ns-op-eager", "auto"},
			map[string]string{"accesses": "2", "abort": "50", "complexity": work})
		if work != "0s" {
			p.Events = max(2_000, s.Events/80)
		}
		out = append(out, p)
	}
	return out
}

func winPoints(s Scale) []Point {
	var out []Point
	for _, fold := range []string{"yes", "no"} {
		for _, window := range []string{"1000", "10000", "100000"} {
			out = append(out, Point{
				Name: "gsw, window of " + window + ", fold " + fold, X: window + ", fold " + fold, Program: "gsw", Events: s.Events / 4,
				Params:     map[string]string{"window": window, "fold": fold},
				Strategies: []string{"auto", "serial", "ns-op-eager"},
			})
		}
	}
	// On few keys a window of the same size holds many versions of each: where a
	// fold, which does not go over them, shows.
	for _, fold := range []string{"yes", "no"} {
		for _, window := range []string{"1000", "10000", "100000"} {
			out = append(out, Point{
				Name: "gsw 32 keys, window of " + window + ", fold " + fold, X: window + ", 32 keys, fold " + fold, Program: "gsw", Events: s.Events,
				Params:     map[string]string{"keys": "32", "length": "32", "trigger": "20", "window": window, "fold": fold},
				Strategies: []string{"serial", "ns-op-eager"},
			})
		}
	}
	return out
}

func ndetPoints(s Scale) []Point {
	var out []Point
	for _, work := range []string{"0s", "1us"} {
		for _, share := range []string{"0", "10", "50", "100"} {
			events := s.Events
			if work != "0s" {
				events /= 4
			}
			out = append(out, Point{
				Name: "gsnd 122880 keys, " + share + " % computed, " + work, X: share + " %, " + work, Program: "gsnd", Events: events,
				Params:     map[string]string{"keys": "122880", "nondet": share, "complexity": work},
				Strategies: []string{"auto", "serial", "ns-op-eager", "ns-op-lazy", "lock"},
			})
		}
	}
	return out
}

func overPoints(s Scale) []Point {
	return []Point{
		{Name: "dynamic, 8us", Program: "dynamic", Events: max(13*2048, s.work(20)), Batch: 2048, Params: map[string]string{"complexity": "8us"}, Strategies: []string{"auto", "serial", "ns-op-eager", "tstream", "lock"}},
		{Name: "dynamic, no work", Program: "dynamic", Events: s.Events, Params: nil, Strategies: []string{"auto", "serial", "ns-op-eager", "tstream", "lock"}},
	}
}
