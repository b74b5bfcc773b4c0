package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"

	"github.com/heddle-stream/heddle/internal/blocks"
	"github.com/heddle-stream/heddle/storage"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

const (
	savepointDir   = "savepoints"
	savepointMagic = "heddlsp\x01"
)

// anyOutput is the output of a run that is yet to choose it.
const anyOutput = "*"

var savepointName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// CheckSavepointName returns an error that says what is allowed.
func CheckSavepointName(name string) error {
	if !savepointName.MatchString(name) || name[0] == '.' {
		return fmt.Errorf("savepoint %q: 1 to 100 letters, digits and . _ - are allowed, and no . in front", name)
	}
	return nil
}

// Savepoint keeps the application's state at a point under a name, as a file of its own
// in the directory's savepoints, which stays until somebody removes it. One of the same
// name is replaced. Between batches.
func (d *Dir) Savepoint(app *txn.App, name string, p Point) error {
	if err := CheckSavepointName(name); err != nil {
		return err
	}
	at := &Dir{fs: d.fs, path: path.Join(d.path, savepointDir)}
	if err := d.fs.MkdirAll(at.path); err != nil {
		return err
	}
	p.Rows = rowsOf(app)
	m := d.m
	m.Files, m.Done, m.Record = nil, p.Events, 0
	err := at.replace(name, func(w io.Writer) error { return writeSavepoint(w, app, m, p) })
	if err != nil {
		return fmt.Errorf("savepoint %s: %w", name, err)
	}
	return nil
}

func writeSavepoint(w io.Writer, app *txn.App, m manifest, p Point) error {
	b, err := blocks.NewWriter(w, savepointMagic)
	if err != nil {
		return err
	}
	b.JSON(blockManifest, m)
	b.JSON(blockPoint, p)
	rows, versions := b.Items(itemRow), b.Items(itemVersion)
	if err := state(app, rows.Add, versions.Add); err != nil {
		return err
	}
	rows.Flush()
	versions.Flush()
	b.Block(blockEnd, nil)
	return b.Flush()
}

// state hands out the rows of an application and then the versions that windows need, each
// behind the number of its table, until it is told that it is enough.
func state(app *txn.App, row, version func(item []byte) bool) error {
	for _, item := range storage.Snapshot(app) {
		if !row(item) {
			return nil
		}
	}
	if err := app.LogErr(); err != nil {
		return err
	}
	var item []byte
	for i, table := range app.Tables() {
		table.Versions(func(v []byte) bool {
			item = append(binary.AppendUvarint(item[:0], uint64(i)), v...)
			return version(item)
		})
	}
	return nil
}

// readSavepointManifest reads whose state a savepoint is.
func readSavepointManifest(fsys vfs.FS, name string) (m manifest, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return parseManifest(f, name, savepointMagic, "savepoint")
}

// beginWith makes the application and the new directory begin with a savepoint.
func (d *Dir) beginWith(app *txn.App, from string) (p Point, err error) {
	kept, err := readSavepointManifest(d.fs, from)
	if err != nil {
		return p, err
	}
	if was, now := kept.Identity["workload"], d.m.Identity["workload"]; was != now {
		return p, refuse("savepoint %s is of %s, not of %s", from, was, now)
	}
	d.m.Tables, d.m.Events, d.m.Done = kept.Tables, kept.Events, kept.Done
	d.end = d.m.Done
	tables, _, err := d.fit(app)
	if err != nil {
		return p, err
	}
	reset(tables)
	p, err = loadFile(d.fs, from, savepointMagic, "savepoint", tables, true)
	p.Output, p.OutputTo, p.Letters = 0, anyOutput, 0 // which are new files
	return p, err
}

// savepoints lists the names of the directory's savepoints.
func (d *Dir) savepoints() ([]string, error) {
	names, err := d.fs.List(path.Join(d.path, savepointDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}
