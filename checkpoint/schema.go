package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/txn"
)

// schemas returns what of an application the stored form of its state depends on.
func schemas(app *txn.App) []txn.Schema {
	var out []txn.Schema
	for _, t := range app.Tables() {
		out = append(out, t.Schema())
	}
	return out
}

// fit finds the application's table for each one that is kept, ready to read its rows,
// and whether the application differs from the one that kept them.
func (d *Dir) fit(app *txn.App) (tables []txn.TableView, differs bool, err error) {
	differs = !slices.Equal(schemas(app), d.m.Tables) || !slices.Equal(app.EventSchemas(), d.m.Events)
	if tables, err = tablesFor(app, d.m.Tables); err != nil {
		return nil, differs, refuse("state directory %s is of another program: %w", d.path, err)
	}
	if differs && d.end > d.m.Done {
		return nil, differs, refuse("state directory %s is of another program, and its log has %d events that only that one can read: run it once more, to its end or until Ctrl-C", d.path, d.end-d.m.Done)
	}
	return tables, differs, nil
}

// tablesFor returns the application's table for each one that is kept, ready to read its rows.
func tablesFor(app *txn.App, all []txn.Schema) (tables []txn.TableView, err error) {
	var errs []error
	for _, kept := range all {
		i := slices.IndexFunc(app.Tables(), func(t txn.TableView) bool { return t.Name() == kept.Table })
		if i < 0 {
			errs = append(errs, fmt.Errorf("table %s is kept, and this program does not have it", kept.Table))
			continue
		}
		t := app.Tables()[i]
		errs = append(errs, t.Migrate(kept))
		tables = append(tables, t)
	}
	return tables, errors.Join(errs...)
}

// settleSchemas ends the reading of earlier schemas.
func settleSchemas(app *txn.App) error {
	for _, t := range app.Tables() {
		if err := t.Migrate(t.Schema()); err != nil {
			return err
		}
	}
	return nil
}
