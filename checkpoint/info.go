package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
)

// Info tells what a state directory keeps.
type Info struct {
	Identity   Identity `json:"identity"`
	Tables     []string `json:"tables"`
	EventTypes []string `json:"event_types"`
	Savepoints []string `json:"savepoints"`
	Files      []string `json:"checkpoint"` // none before the first one
	Bytes      int64    `json:"checkpoint_bytes"`
	Point      Point    `json:"point"`
	Batches    int      `json:"log_batches"` // behind the checkpoint
	Events     int      `json:"log_events"`
	LogBytes   int64    `json:"log_bytes"`
}

// Look reads what a directory keeps without changing it. Nobody may have it open.
// An error that matches fs.ErrNotExist tells that it is no state directory.
func Look(fsys vfs.FS, dir string) (Info, error) {
	d := &Dir{fs: fsys, path: dir}
	names, err := fsys.List(path.Join(dir, logName))
	if err != nil || len(names) == 0 {
		return Info{}, fmt.Errorf("%s: no state directory: %w", dir, errors.Join(err, fs.ErrNotExist))
	}
	if err := d.readManifest(); err != nil {
		return Info{}, err
	}
	info := Info{Identity: d.m.Identity, Files: d.m.Files}
	for _, e := range d.m.Events {
		info.EventTypes = append(info.EventTypes, e.Event)
	}
	for _, t := range d.m.Tables {
		info.Tables = append(info.Tables, t.Table)
	}
	if info.Savepoints, err = d.savepoints(); err != nil {
		return info, err
	}
	if len(info.Files) > 0 {
		if info.Point, info.Bytes, err = d.lookAtCheckpoint(); err != nil {
			return info, err
		}
	}
	r, err := wal.NewReader(fsys, path.Join(dir, logName), d.m.Record)
	if err != nil {
		return info, err
	}
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return info, r.Close()
		}
		var l *Logged
		if err == nil {
			l, err = d.parse(record)
		}
		if err != nil {
			return info, errors.Join(err, r.Close())
		}
		if l.kind != recordView {
			info.Batches++
			info.Events += l.Events
		}
		info.LogBytes += int64(len(record.Payload))
	}
}

// lookAtCheckpoint reads the point of the checkpoint and its size.
func (d *Dir) lookAtCheckpoint() (p Point, size int64, err error) {
	if err := d.measureFiles(); err != nil {
		return p, 0, err
	}
	size = sum(d.sizes)
	name := path.Join(d.path, d.m.Files[len(d.m.Files)-1])
	f, err := d.fs.Open(name)
	if err != nil {
		return p, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := blocks.NewReader(f, name, magic, "checkpoint")
	if err != nil {
		return p, size, err
	}
	defer b.Close()
	if err := b.Next(); err != nil {
		return p, size, err
	}
	return p, size, b.JSON(&p, "point")
}
