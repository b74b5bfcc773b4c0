package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// small returns options with a checkpoint every so many bytes of a log in small
// segments.
func small(every int64) checkpoint.Options {
	return checkpoint.Options{Every: every, SegmentSize: 4096, Inline: true, AllViews: true}
}

var errCrash = errors.New("the power is gone")

// life is what a run over a state directory shows at its end.
type life struct {
	state, results storage.Hash
	events         int
	output         string
}

// live runs the events over a state directory from wherever it stands.
func live(fs vfs.FS, events []metamorphic.Event, o Options) (life, error) {
	return liveOn(metamorphic.New(4), fs, events, o)
}

func liveOn(l *metamorphic.List, fs vfs.FS, events []metamorphic.Event, o Options) (life, error) {
	o.FS, o.State, o.Output, o.HashResults = fs, "state", "out.jsonl", true
	m, err := Run(context.Background(), l.App, l.Events.Slice(events), o)
	if err != nil {
		return life{}, err
	}
	f, err := fs.Open("out.jsonl")
	if err != nil {
		return life{}, err
	}
	text, err := io.ReadAll(f)
	return life{storage.StateHash(l.App), m.ResultsHash, m.Events, string(text)}, errors.Join(err, f.Close())
}

// dying makes everything from operation n on fail.
func dying(fs vfs.FS, n int) *vfs.Faulty {
	f := vfs.NewFaulty(fs)
	f.SetHook(func(op vfs.Op) error {
		if op.N >= n {
			return errCrash
		}
		return nil
	})
	return f
}

// story is a run that is to survive.
type story struct {
	what    string
	events  []metamorphic.Event
	windows bool
	o       Options
	want    life
	ways    map[string]int // batches by how they were run or done again
}

// drawStory draws an application with all features, one without windows, or one
// whose batches can be done again by their views.
func drawStory(r *rng.RNG) *story {
	s := &story{ways: map[string]int{}}
	shape := metamorphic.Shape{Keys: 2 + r.IntN(8), OpsMax: 1 + r.IntN(4), Tables: 1 + r.IntN(3)}
	switch r.IntN(4) {
	case 0:
		s.windows = true
	case 1:
		shape.NoWindows = true
	default:
		shape.Plain = true
	}
	s.events = metamorphic.Draw(r, 30+r.IntN(40), shape)
	s.o = Options{
		Workers: 1 + r.IntN(3), Batch: 1 + r.IntN(9), Strategy: []string{"auto", "serial", "ns-op-eager", "bfs-op-lazy"}[r.IntN(4)],
		Durability: Schemes()[r.IntN(len(Schemes()))], Checkpoints: small(int64(1 + r.IntN(1500))),
	}
	s.o.Listener.BatchDone = func(b BatchInfo) { s.ways[b.Strategy]++ }
	return s
}

func (s *story) live(fs vfs.FS) (life, error) {
	if s.windows {
		return liveOn(metamorphic.New(4), fs, s.events, s.o)
	}
	return liveOn(metamorphic.NewUnwatched(4), fs, s.events, s.o)
}

// A run that loses its power at any operation, and may lose it again while it
// recovers, ends as if nothing had happened: same state, same results, and an
// output without a gap or a double.
func TestCrashAtEveryOperation(t *testing.T) {
	seeds, step := 40, 4
	switch {
	case testing.Short():
		seeds, step = 24, 13
	case metamorphic.Seeds(0) > 0: // a campaign
		step = 1
	}
	ways := map[string]int{}
	for seed := range uint64(metamorphic.Seeds(seeds)) {
		r := rng.New(seed, 31)
		s := drawStory(r)
		whole := vfs.NewFaulty(vfs.NewCrashable())
		var err error
		if s.want, err = s.live(whole); err != nil {
			t.Fatal(err)
		}
		for n := int(seed) % step; n < whole.Ops(); n += step {
			s.what = fmt.Sprintf("seed %d, crash at operation %d", seed, n)
			s.crashOnce(t, n, r)
		}
		for way, n := range s.ways {
			ways[way] += n
		}
	}
	for _, way := range []string{"serial", "ns-op-eager", redoneByChains, redoneByLevels} {
		if ways[way] == 0 {
			t.Errorf("no batch went by %s: %v", way, ways)
		}
	}
}

// The same while checkpoints are written beside the run, as they are outside of tests:
// what happens when is then up to the machine.
func TestCrashBesideCheckpoint(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 15
	}
	for seed := range uint64(metamorphic.Seeds(seeds)) {
		r := rng.New(seed, 36)
		s := drawStory(r)
		s.o.Checkpoints = small(int64(1 + r.IntN(300)))
		s.o.Checkpoints.Inline = false
		whole := vfs.NewFaulty(vfs.NewCrashable())
		var err error
		if s.want, err = s.live(whole); err != nil {
			t.Fatal(err)
		}
		disk := vfs.NewCrashable()
		for range 4 {
			if _, err := s.live(dying(disk, r.IntN(whole.Ops()))); err == nil {
				break
			}
			fall(disk, r)
		}
		if got, err := s.live(disk); err != nil || got != s.want {
			t.Fatalf("seed %d, %s: %v\n got %+v\nwant %+v", seed, s.o.Durability, err, got, s.want)
		}
	}
}

func (s *story) crashOnce(t *testing.T, n int, r *rng.RNG) {
	t.Helper()
	disk := vfs.NewCrashable()
	before := s.o
	if _, err := s.live(dying(disk, n)); !errors.Is(err, errCrash) {
		t.Fatalf("%s: error %v", s.what, err)
	}
	fall(disk, r)
	for again := 0; r.IntN(2) == 0 && again < 3; again++ {
		if _, err := s.live(dying(disk, r.IntN(60))); err == nil {
			break
		}
		fall(disk, r)
	}
	s.o.Workers, s.o.Batch, s.o.Strategy = 1+r.IntN(3), 1+r.IntN(20), "auto"
	s.o.Durability = Schemes()[r.IntN(len(Schemes()))]
	got, err := s.live(disk)
	if err != nil {
		t.Fatalf("%s: %s: recovery: %v", s.what, before.Durability, err)
	}
	if got != s.want {
		t.Fatalf("%s: %s:\n got %+v\nwant %+v", s.what, before.Durability, got, s.want)
	}
	s.o = before
}

// fall takes the power away, or only kills the process.
func fall(disk *vfs.Crashable, r *rng.RNG) {
	if r.IntN(4) == 0 {
		disk.Kill()
	} else {
		disk.Crash(r)
	}
}

// What was kept belongs to one application and one input.
func TestStateOfAnotherIsRefused(t *testing.T) {
	r := rng.New(1, 32)
	events := metamorphic.Draw(r, 40, metamorphic.Shape{Keys: 5, OpsMax: 3, Tables: 2})
	fs := vfs.NewCrashable()
	o := Options{Identity: map[string]string{"workload": "list"}, Checkpoints: small(1000)}
	if _, err := live(fs, events, o); err != nil {
		t.Fatal(err)
	}
	o.Identity = map[string]string{"workload": "other"}
	if _, err := live(fs, events, o); err == nil {
		t.Error("another identity is accepted")
	}
	o.Identity = map[string]string{"workload": "list"}
	if _, err := live(fs, events[:10], o); err == nil {
		t.Error("a shorter input is accepted")
	}
	if got, err := live(fs, events, o); err != nil || got.events != len(events) {
		t.Errorf("the same input: %d events, %v", got.events, err)
	}
}

// A full disk is an error, and the directory is good for more when there is room.
func TestFullDisk(t *testing.T) {
	r := rng.New(3, 33)
	events := metamorphic.Draw(r, 60, metamorphic.Shape{Keys: 5, OpsMax: 3, Tables: 2})
	want, err := live(vfs.NewCrashable(), events, Options{Batch: 7, Checkpoints: small(500)})
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for space := int64(0); space < 12_000; space += 97 {
		disk := vfs.NewFaulty(vfs.NewCrashable())
		disk.SetSpace(space)
		if _, err := live(disk, events, Options{Batch: 7, Checkpoints: small(500)}); err == nil {
			continue
		} else if !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("%d bytes of room: %v", space, err)
		}
		full++
		disk.Heal()
		got, err := live(disk, events, Options{Batch: 7, Checkpoints: small(500)})
		if err != nil || got != want {
			t.Fatalf("%d bytes of room, then enough: %v\n got %+v\nwant %+v", space, err, got, want)
		}
	}
	if full == 0 {
		t.Error("the disk was never full")
	}
}

// A process that is killed at random times loses nothing and repeats nothing.
func TestKilledProcess(t *testing.T) {
	rounds := 5
	switch {
	case testing.Short():
		rounds = 2
	case metamorphic.Seeds(0) > 0: // a campaign
		rounds = 50
	}
	r := rng.New(uint64(metamorphic.Seeds(1)), 34)
	for round := range rounds {
		dir := t.TempDir()
		kills := 0
		for ; ; kills++ {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), childEnv+"="+dir)
			child.Stderr = os.Stderr
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			// Killed after so many batches have told that they are done. On a disk where no checkpoint
			// is finished between two kills every life begins with batch 0 and repeats the log in no
			// time: only lives that may grow longer than all batches are sure to come to an end.
			said := ""
			left := 1 + r.IntN(childBatches+kills)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				said += lines.Text() + "\n"
				if left--; left == 0 {
					_ = child.Process.Kill()
				}
			}
			if child.Wait() == nil {
				break
			}
			if kills > 200 {
				t.Fatalf("the run does not come to its end: %s", said)
			}
		}
		if kills == 0 {
			t.Errorf("round %d: nobody was killed", round)
		}
		want, err := live(vfs.NewCrashable(), childEvents(), childOptions())
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "out.jsonl"))
		if err != nil || string(got) != want.output {
			t.Fatalf("round %d: after %d kills the output differs (%v)", round, kills, err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "hashes"))
		if hashes := want.state.String() + want.results.String(); err != nil || string(text) != hashes {
			t.Fatalf("round %d: after %d kills the hashes are %s, expected %s (%v)", round, kills, text, hashes, err)
		}
	}
}

const childEnv = "HEDDLE_KILLED_DIR"

// The process has so many batches of ten events.
const childBatches = 40

func childEvents() []metamorphic.Event {
	return metamorphic.Draw(rng.New(7, 35), 10*childBatches, metamorphic.Shape{Keys: 12, OpsMax: 4, Tables: 2})
}

func childOptions() Options {
	return Options{Batch: 10, Checkpoints: checkpoint.Options{Every: 1000, SegmentSize: 4096}}
}

// killed runs the process that TestKilledProcess kills.
func killed(dir string) error {
	l := metamorphic.New(4)
	o := childOptions()
	o.State, o.Output, o.HashResults = filepath.Join(dir, "state"), filepath.Join(dir, "out.jsonl"), true
	o.Listener.BatchDone = func(b BatchInfo) { fmt.Fprintln(os.Stdout, "batch", b.Number) }
	m, err := Run(context.Background(), l.App, l.Events.Slice(childEvents()), o)
	if err != nil {
		return err
	}
	hashes := storage.StateHash(l.App).String() + m.ResultsHash.String()
	return os.WriteFile(filepath.Join(dir, "hashes"), []byte(hashes), 0o644)
}
