package engine

import (
	"bytes"
	"context"
	"testing"

	"github.com/heddle-stream/heddle/internal/metamorphic"
	"github.com/heddle-stream/heddle/internal/rng"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
)

// logged returns the kinds and payloads of the longest log that a run under a scheme
// leaves when it is cut short.
func logged(t testing.TB, scheme Scheme) (kinds []byte, payloads [][]byte) {
	t.Helper()
	events := metamorphic.Draw(rng.New(9, 71), 60, metamorphic.Shape{Keys: 6, OpsMax: 3, Tables: 2, Plain: true})
	for n := 0; n < 100; n += 6 {
		fs := vfs.NewCrashable()
		_, err := liveOn(metamorphic.NewUnwatched(4), dying(fs, n), events, Options{Batch: 10, Durability: scheme, Strategy: "ns-op-eager", Workers: 2})
		if err == nil {
			break
		}
		r, err := wal.NewReader(fs, "state/log", 0)
		if err != nil {
			continue
		}
		var k []byte
		var p [][]byte
		for record, err := r.Next(); err == nil; record, err = r.Next() {
			k, p = append(k, record.Kind), append(p, bytes.Clone(record.Payload))
		}
		if len(k) > len(kinds) {
			kinds, payloads = k, p
		}
	}
	return kinds, payloads
}

// FuzzLog has a run recover from records of any content: that is an error or not, and
// nothing worse.
func FuzzLog(f *testing.F) {
	for _, scheme := range []Scheme{Command, Views, Dependency, WAL} {
		kinds, payloads := logged(f, scheme)
		if len(kinds) < 2 {
			f.Fatalf("%s: a log of %d records", scheme, len(kinds))
		}
		for i := 1; i < len(kinds); i++ {
			f.Add(kinds[i-1], payloads[i-1], kinds[i], payloads[i])
			f.Add(kinds[0], payloads[0], kinds[i], payloads[i])
		}
	}
	f.Fuzz(func(t *testing.T, firstKind byte, first []byte, secondKind byte, second []byte) {
		fs := &vfs.Memory{}
		run := func() error {
			l := metamorphic.NewUnwatched(4)
			_, err := Run(context.Background(), l.App, l.Events.Slice(nil), Options{FS: fs, State: "state", Workers: 2, Strategy: "ns-op-eager", Checkpoints: small(1000)})
			return err
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		log, err := wal.Open(fs, "state/log", wal.Options{SegmentSize: 4096})
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range []struct {
			kind    byte
			payload []byte
		}{{firstKind, first}, {secondKind, second}} {
			if _, err := log.Append(record.kind, record.payload); err != nil {
				_ = log.Close() // a kind that is not allowed
				return
			}
		}
		if err := log.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		_ = run() // the input ends before what the log says, or the log is damaged
	})
}
