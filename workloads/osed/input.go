package osed

import (
	"bytes"
	_ "embed" // the sample
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/heddle-stream/heddle/program"
)

//go:embed sample_texts.csv.gz
var sample []byte

const sampleName = "sample_texts.csv.gz"

var columns = []string{"ts", "source", "text"}

const (
	maxTime = 1 << 34 // seconds, in the year 2514: products stay within 64 bits
	maxText = 10_000  // bytes, far above what is short
)

// Text is a short text. IDs count from 1, in the order of texts.
type Text struct {
	ID     uint32
	Time   int64
	Window int64 // number of the time window, 0 for that of the first text
	Source string
	Words  []Word
}

// content is what two texts have in common when one repeats the other.
func (t *Text) content() string {
	var b strings.Builder
	b.WriteString(t.Source)
	for _, w := range t.Words {
		b.WriteByte(' ')
		b.WriteString(w.Text)
	}
	return b.String()
}

func openRows(path string) (*program.Rows, error) {
	if path != "" {
		return program.OpenRows(path, columns...)
	}
	r, err := program.Decompress(io.NopCloser(bytes.NewReader(sample)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sampleName, err)
	}
	return program.NewRows(sampleName, r, columns...)
}

// corpus is the input: texts without ids and windows.
type corpus struct {
	texts  []Text
	window int64
}

// read reads a file, or the sample for "".
func read(path string, window int64) (c *corpus, err error) {
	rows, err := openRows(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	c = &corpus{window: window}
	sources, last := map[string]string{}, int64(0)
	for rows.Next() {
		t := Text{Time: rows.Int(0, 0, maxTime), Words: tokenize(strings.Clone(rows.Text(2)))}
		source, known := sources[rows.Text(1)]
		if !known {
			source = strings.Clone(rows.Text(1))
			sources[source] = source
		}
		t.Source = source
		switch {
		case t.Time < last:
			_ = rows.Fail(0, fmt.Sprintf("ts %d is before that of the text above, %d", t.Time, last))
		case source == "":
			_ = rows.Fail(1, "no source")
		case len(rows.Text(2)) > maxText:
			_ = rows.Fail(2, fmt.Sprintf("a text of %d bytes; %d are allowed", len(rows.Text(2)), maxText))
		}
		last = t.Time
		c.texts = append(c.texts, t)
	}
	if rows.Err() == nil && len(c.texts) == 0 {
		if path == "" {
			path = sampleName
		}
		return nil, &program.InputError{File: path, Line: 2, Column: 1, What: "no texts"}
	}
	return c, rows.Err()
}

// text returns text i of a stream that repeats the texts for ever. Each round
// begins a window after the end of the one before.
func (c *corpus) text(i int) Text {
	n := len(c.texts)
	first, last := c.texts[0].Time, c.texts[n-1].Time
	t := c.texts[i%n]
	t.ID = uint32(i + 1)
	t.Time += int64(i/n) * (last - first + c.window)
	t.Window = (t.Time - first) / c.window
	return t
}
