package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/storage/wal"
	"github.com/heddle-stream/heddle/txn"
)

// Identity tells whose state a directory keeps: whatever a run must have in common
// with the one before to go on with it.
type Identity map[string]string

// manifest names the checkpoint that counts.
type manifest struct {
	Identity Identity          `json:"identity"`
	Tables   []txn.Schema      `json:"tables"`
	Events   []txn.EventSchema `json:"event_types"`
	Files    []string          `json:"checkpoint"`     // a whole state, then what changed; none before the first one
	Done     int               `json:"done"`           // events in it
	Record   uint64            `json:"record"`         // first record of the log behind it
	Written  int               `json:"written"`        // checkpoints since the beginning
	From     string            `json:"from,omitempty"` // the savepoint with which it began
}

const (
	lockName      = "LOCK"
	manifestName  = "MANIFEST"
	manifestMagic = "heddlmf\x01"
	blockManifest = 'M'
	logName       = "log"

	// A checkpoint is due when the log has grown by so many bytes, or by twice the
	// size of the last checkpoint: then reading the log back takes no longer than a
	// few checkpoints would, and writing checkpoints no more than half of all bytes.
	dueBytes = 64 << 20
)

// Dir is a state directory that is open. One goroutine.
type Dir struct {
	opts   Options
	fs     vfs.FS
	path   string
	lock   io.Closer
	m      manifest
	fresh  bool // there is no manifest yet
	log    *wal.Log
	replay *wal.Reader
	read   bool    // replay was opened, and closed again at the end of the log
	ahead  *Logged // read, and not used yet
	end    int     // events done, those in the log included
	bytes  int64   // logged since the last checkpoint began
	sizes  []int64 // of the files of the checkpoint
	buf    []byte

	changed *txn.Changes // since the last checkpoint
	writing *writing     // the checkpoint under way, or nil
}

// Options of a state directory. The zero value is good.
type Options struct {
	Every       int64 // bytes of log after which a checkpoint is due, at least; 0 is 64 MiB
	SegmentSize int64 // of the log, see wal.Options
	Inline      bool  // checkpoints are written by who takes them, so that tests can repeat what happens
	AllViews    bool  // the engine logs views, too, that cost more than they save: for tests
}

// Open opens a state directory, or makes one. It is locked until Close; an error
// that matches vfs.ErrLocked tells that somebody else has it.
func Open(fsys vfs.FS, dir string, id Identity, opts Options) (*Dir, error) {
	if opts.Every == 0 {
		opts.Every = dueBytes
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(path.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	d := &Dir{opts: opts, fs: fsys, path: dir, lock: lock, m: manifest{Identity: id}}
	if err := d.open(id); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func (d *Dir) open(id Identity) error {
	if err := d.readManifest(); err != nil {
		return err
	}
	if err := d.m.Identity.Refuse(d.path, id); err != nil {
		return err
	}
	// The manifest may have been put in place by a process that was killed before it
	// synced the directory: nothing that another one needs may go before that.
	if err := d.fs.SyncDir(d.path); err != nil {
		return err
	}
	if err := d.clean(); err != nil {
		return err
	}
	log, err := wal.Open(d.fs, path.Join(d.path, logName), wal.Options{SegmentSize: d.opts.SegmentSize})
	if err != nil {
		return err
	}
	d.log = log
	if d.fresh && log.Next() > 0 {
		return errors.Join(fmt.Errorf("state directory %s has a log of %d records and no %s, which says whose they are: it is damaged", d.path, log.Next(), manifestName), log.Close())
	}
	return nil
}

// Refuse returns a [RefusalError] if a state directory is not whose a run says that it is.
func (kept Identity) Refuse(dir string, now Identity) error {
	if maps.Equal(kept, now) {
		return nil
	}
	return refuse("state directory %s keeps the state of another run: %s: use another directory", dir, differences(kept, now))
}

// differences tells in what two identities differ, for people.
func differences(kept, now Identity) string {
	all := maps.Clone(kept)
	if all == nil {
		all = Identity{}
	}
	maps.Copy(all, now)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if kept[k] != now[k] {
			out = append(out, fmt.Sprintf("%s %q, now %q", k, kept[k], now[k]))
		}
	}
	return strings.Join(out, "; ")
}

// readManifest reads the manifest, if there is one yet.
func (d *Dir) readManifest() error {
	name := path.Join(d.path, manifestName)
	f, err := d.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		d.fresh = true
		return nil
	}
	if err != nil {
		return err
	}
	d.m, err = parseManifest(f, name, manifestMagic, "manifest")
	return errors.Join(err, f.Close())
}

func parseManifest(r io.Reader, name, magic, what string) (m manifest, err error) {
	b, err := blocks.NewReader(r, name, magic, what)
	if err != nil {
		return m, err
	}
	defer b.Close()
	if err := b.Next(); err != nil {
		return m, err
	}
	if b.Kind != blockManifest {
		return m, b.Corrupt("no manifest")
	}
	return m, b.JSON(&m, "manifest")
}

// clean removes what a crash left over.
func (d *Dir) clean() error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, vfs.Unfinished) || strings.HasPrefix(name, "checkpoint-") && !slices.Contains(d.m.Files, name) {
			if err := d.fs.Remove(path.Join(d.path, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Restore puts the application into the state of the checkpoint and returns its
// point; without one it leaves the application alone, or begins with the savepoint in
// the file from, unless that is "". Then Next gives the batches since.
//
// The application may have tables that the one which kept the state did not have; they
// stay as they are. Values of another type need txn.Migrated.
func (d *Dir) Restore(app *txn.App, from string) (p Point, err error) {
	if from != "" && from == d.m.From { // it did begin with it
		from = ""
	}
	if from != "" && len(d.m.Tables) > 0 {
		return p, refuse("state directory %s has a state already: a savepoint begins a new one", d.path)
	}
	if err := d.measure(); err != nil {
		return p, err
	}
	var tables []txn.TableView
	differs := false
	switch {
	case from != "":
		p, err = d.beginWith(app, from)
	case d.fresh:
		d.m.Tables, d.m.Events = schemas(app), app.EventSchemas()
	default:
		if tables, differs, err = d.fit(app); err == nil && len(d.m.Files) > 0 {
			p, err = d.load(tables)
		}
	}
	if err == nil {
		err = errors.Join(settleSchemas(app), d.measureFiles())
	}
	if err != nil {
		return p, err
	}
	d.changed = app.Track()
	if from != "" {
		d.m.From = from
	}
	switch {
	case from != "" || differs:
		d.m.Tables, d.m.Events = schemas(app), app.EventSchemas()
		err = d.checkpoint(app, p, true)
	case d.fresh: // whose state it is must be known before there is any
		err = d.writeManifest(d.m)
	}
	d.fresh = false
	return p, err
}

// measureFiles finds how large the files of the checkpoint are.
func (d *Dir) measureFiles() error {
	d.sizes = d.sizes[:0]
	for _, name := range d.m.Files {
		size, err := d.fs.Size(path.Join(d.path, name))
		if err != nil {
			return err
		}
		d.sizes = append(d.sizes, size)
	}
	return nil
}

// At returns the number of events in the checkpoint.
func (d *Dir) At() int { return d.m.Done }

// Unlogged tells that events were done that the log does not get.
func (d *Dir) Unlogged(events int) {
	const likely = 16 // bytes of an event
	d.bytes += likely * int64(events)
}

// Due reports whether the log has grown so much that a checkpoint pays.
func (d *Dir) Due() bool {
	last := int64(0)
	if n := len(d.sizes); n > 0 {
		last = d.sizes[n-1]
	}
	return d.writing == nil && d.bytes > max(d.opts.Every, 2*last)
}

// writeManifest makes a manifest the one that counts.
func (d *Dir) writeManifest(m manifest) error {
	err := d.replace(manifestName, func(w io.Writer) error {
		b, err := blocks.NewWriter(w, manifestMagic)
		if err != nil {
			return err
		}
		b.JSON(blockManifest, m)
		return b.Flush()
	})
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	return nil
}

// replace writes a file and puts it in place when it is safe.
func (d *Dir) replace(name string, write func(w io.Writer) error) error {
	return vfs.Replace(d.fs, path.Join(d.path, name), write)
}

// Close gives the directory free. What was not committed is gone.
func (d *Dir) Close() error {
	var errs []error
	if d.writing != nil {
		errs = append(errs, d.abandon())
	}
	if d.replay != nil {
		errs = append(errs, d.replay.Close())
	}
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	return errors.Join(append(errs, d.lock.Close())...)
}
