package program

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Rows reads a CSV file with a header, row by row. The getters read fields of
// the current row; the first field that is not what the getter asks for ends
// the reading, and Err then says where and what.
type Rows struct {
	file   string
	csv    *csv.Reader
	source io.ReadCloser
	names  []string
	row    []string
	line   int // on which the row's last field begins
	err    error
}

// OpenRows opens a file, see [Open], whose columns have the given names.
func OpenRows(path string, columns ...string) (*Rows, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	rows, err := NewRows(path, r, columns...)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return rows, nil
}

// NewRows reads from r, which it closes with itself; errors call it file.
func NewRows(file string, r io.ReadCloser, columns ...string) (*Rows, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord, c.ReuseRecord = len(columns), true
	rows := &Rows{file: file, csv: c, source: r, names: columns}
	if !rows.Next() {
		if rows.err == nil {
			rows.err = &InputError{file, 1, 1, "empty; the first line names the columns: " + strings.Join(columns, ",")}
		}
		return nil, rows.err
	}
	for i, name := range columns {
		if rows.row[i] != name {
			return nil, rows.Fail(i, fmt.Sprintf("column %q; %q is expected here", clip(rows.row[i]), name))
		}
	}
	return rows, nil
}

// Next reads a row. It returns false at the end, or when there is an error.
func (r *Rows) Next() bool {
	if r.err != nil {
		return false
	}
	row, err := r.csv.Read()
	if err == nil {
		r.row = row
		r.line, _ = r.csv.FieldPos(len(row) - 1)
		return true
	}
	var syntax *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, csv.ErrFieldCount):
		line, column := r.csv.FieldPos(0)
		r.err = &InputError{r.file, line, column, fmt.Sprintf("%d fields; %d are expected: %s", len(row), len(r.names), strings.Join(r.names, ","))}
	case errors.As(err, &syntax):
		r.err = &InputError{r.file, syntax.Line, syntax.Column, syntax.Err.Error()}
	default: // such as damaged compression
		r.err = &InputError{r.file, r.line + 1, 1, err.Error()}
	}
	return false
}

// Err returns the first error, nil at a proper end.
func (r *Rows) Err() error { return r.err }

// Close closes what is read.
func (r *Rows) Close() error { return r.source.Close() }

// Fail makes the error that a field of the current row is not as it should be,
// which ends the reading.
func (r *Rows) Fail(field int, what string) error {
	if r.err == nil {
		line, column := r.csv.FieldPos(field)
		r.err = &InputError{r.file, line, column, what}
	}
	return r.err
}

// Text returns a field, valid until Next.
func (r *Rows) Text(field int) string { return r.row[field] }

// Int returns a field that is an integer from lo to hi, without sign unless
// negative and without leading zeros.
func (r *Rows) Int(field int, lo, hi int64) int64 {
	s := r.row[field]
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < lo || n > hi || strconv.FormatInt(n, 10) != s {
		_ = r.Fail(field, fmt.Sprintf("%s %q: an integer from %d to %d is allowed", r.names[field], clip(s), lo, hi))
		return lo
	}
	return n
}

// clip shortens what an error message quotes.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
