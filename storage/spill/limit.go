package spill

import (
	"fmt"
	"hash/maphash"
	"os"
	"path"
	"strconv"

	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// Limit makes the tables of an application keep as many rows in memory as fit into half of
// what the process may take, and the others in files of a directory, which is made; ""
// stands for that of temporary files. The other half is for batches, results and the program.
// Before or after rows are loaded; not while an engine runs the application. App.Close frees
// the files.
func Limit(app *txn.App, process int64, fs vfs.FS, dir string) error {
	if dir == "" {
		dir = os.TempDir()
	}
	if err := fs.MkdirAll(dir); err != nil {
		return fmt.Errorf("rows on disk: %w", err)
	}
	// No two logs have the same names, though others may use the directory.
	own := fmt.Sprintf("heddle-%016x-", maphash.String(maphash.MakeSeed(), app.Name()))
	app.LimitMemory(process/2, func(table int) txn.RowLog { return New(fs, path.Join(dir, own+strconv.Itoa(table)), 0) })
	return nil
}
