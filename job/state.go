package job

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/heddle-stream/heddle/checkpoint"
	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/internal/clock"
	"github.com/heddle-stream/heddle/operators"
	"github.com/heddle-stream/heddle/storage/vfs"
)

// A state directory of a job has
//
//	LOCK         held by the process that runs it
//	checkpoint   all that the job remembers at some punctuation, put in place by a rename
//	windows/     contents of windows that went to disk: the checkpoint knows of files how long
//	             they were then; what follows in them is written anew
//
// A crash at any operation leaves the checkpoint that was there, with all the files that it wants.
const (
	lockName       = "LOCK"
	checkpointName = "checkpoint"
	windowsName    = "windows"

	stateMagic = "heddljb\x01"
	blockHead  = 'H'
	blockEnd   = 'E'
)

// head is whose state a checkpoint is, and how far the job had come.
type head struct {
	Identity checkpoint.Identity `json:"identity"`
	Events   int64               `json:"events"`
	Batches  int64               `json:"batches"`
}

// state is a state directory that is open.
type state struct {
	fs    vfs.FS
	path  string
	lock  io.Closer
	id    checkpoint.Identity
	every int64 // batches between two checkpoints; 0 to find out

	events, batches int64 // in the last checkpoint
	at              int64 // when it was written
	nanos           int64 // how long that took
}

// openState opens the state directory of a job, or makes one.
func openState(fsys vfs.FS, dir string, id checkpoint.Identity) (*state, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(path.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	return &state{fs: fsys, path: dir, lock: lock, id: id, at: clock.NowNanos()}, nil
}

// load makes an execution what it was at the last checkpoint, if there is one.
func (s *state) load(e *operators.Exec) error {
	h, err := readCheckpoint(s.fs, s.path, func(b *blocks.Reader, h head) error {
		if err := h.Identity.Refuse(s.path, s.id); err != nil {
			return err
		}
		// It may have been put in place by a process that was killed before it synced the directory:
		// nothing that another checkpoint needs may go before that.
		if err := s.fs.SyncDir(s.path); err != nil {
			return err
		}
		if err := e.Load(b); err != nil {
			err = fmt.Errorf("state directory %s: %w", s.path, err)
			if errors.Is(err, operators.ErrOtherJob) {
				return checkpoint.NewRefusal(err)
			}
			return err
		}
		return b.Next()
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.events, s.batches = h.Events, h.Batches
	return e.Sweep()
}

// readCheckpoint reads a checkpoint: its head, what a function reads of the job up to the block that
// ends it, which is in hand then, and that nothing follows.
func readCheckpoint(fsys vfs.FS, dir string, read func(b *blocks.Reader, h head) error) (h head, err error) {
	name := path.Join(dir, checkpointName)
	f, err := fsys.Open(name)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := blocks.NewReader(f, name, stateMagic, "checkpoint of a job")
	if err != nil {
		return h, err
	}
	defer b.Close()
	if err := b.Next(); err != nil {
		return h, err
	}
	if b.Kind != blockHead {
		return h, b.Corrupt("no head")
	}
	if err := b.JSON(&h, "head"); err != nil {
		return h, err
	}
	if err := read(b, h); err != nil {
		return h, err
	}
	if b.Kind != blockEnd {
		return h, b.Corrupt("something behind the end")
	}
	return h, nil
}

// Kept is what a state directory of a job keeps.
type Kept struct {
	Identity checkpoint.Identity `json:"identity"`
	Events   int64               `json:"events"` // done
	Batches  int64               `json:"batches"`
	// Bytes is how much of the checkpoint each vertex and edge has, compressed.
	Bytes map[string]int64 `json:"bytes"`
	Files int              `json:"window_files"`
}

// Look reads what a state directory keeps; the error matches fs.ErrNotExist if there is none. Others
// may use it meanwhile.
func Look(fsys vfs.FS, dir string) (k Kept, err error) {
	h, err := readCheckpoint(fsys, dir, func(b *blocks.Reader, _ head) error {
		k.Bytes, err = operators.Sizes(b)
		return err
	})
	if err != nil {
		return k, err
	}
	files, err := fsys.List(path.Join(dir, windowsName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	k.Identity, k.Events, k.Batches, k.Files = h.Identity, h.Events, h.Batches, len(files)
	return k, err
}

// A checkpoint is due when so much time has passed as twenty of them take, a second at least: so
// they take five percent, and a crash costs a second of work or that.
const (
	dueTimes    = 20
	dueNanosMin = 1e9
)

// due reports whether a checkpoint pays behind so many events and batches: not as long as all sources are
// idle.
func (s *state) due(events, batches int64) bool {
	if events == s.events {
		return false
	}
	if s.every > 0 {
		return batches-s.batches >= s.every
	}
	return clock.NowNanos()-s.at > max(dueNanosMin, dueTimes*s.nanos)
}

// save writes a checkpoint and makes it the one that counts.
func (s *state) save(e *operators.Exec, events, batches int64) error {
	began := clock.NowNanos()
	if err := s.write(e, head{s.id, events, batches}); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.events, s.batches, s.at = events, batches, clock.NowNanos()
	s.nanos = s.at - began
	return e.Release()
}

func (s *state) write(e *operators.Exec, h head) error {
	return vfs.Replace(s.fs, path.Join(s.path, checkpointName), func(w io.Writer) error {
		b, err := blocks.NewWriter(w, stateMagic)
		if err != nil {
			return err
		}
		b.JSON(blockHead, h)
		if err := e.Save(b); err != nil {
			return err
		}
		b.Block(blockEnd, nil)
		return b.Flush()
	})
}

func (s *state) close() error { return s.lock.Close() }
