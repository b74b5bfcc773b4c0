package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/segmentio/encoding/json"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Options of reading. The zero value is good.
type Options struct {
	// Format is one of Formats. Default: what the name of the file ends in.
	Format string
	// Discard keeps what cannot be an event as dead letters instead of ending with an
	// *program.InputError.
	Discard bool
	// Stdin is what the name - stands for. Default: the process's standard input.
	Stdin io.Reader
}

// Formats returns the formats that can be read.
func Formats() []string { return []string{"jsonl", "csv", "bin"} }

// formatOf finds a format by a name, with or without the ending of a compression.
func formatOf(name string) string {
	bare := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	switch ext := strings.TrimPrefix(filepath.Ext(bare), "."); ext {
	case "json", "ndjson":
		return "jsonl"
	default:
		return ext
	}
}

// Files is a source of the events in files. One goroutine, but for Close.
type Files struct {
	mu      sync.Mutex // held by Fill and Close
	ctx     context.Context
	app     *txn.App
	opts    Options
	names   []string // that are left, the first one is open if file is set
	file    io.ReadCloser
	in      *bufio.Reader
	reader  reader
	at      txn.Position
	skip    int64 // bytes of the first file that were read before
	waiting *pump // of standard input
	long    []byte
	closed  bool
}

// reader makes events of one format.
type reader interface {
	// begin is called at the beginning of each file.
	begin()
	// ready reports whether the next event is in memory as a whole.
	ready() bool
	// next reads an event from the front of the file and pushes it. It returns how many
	// bytes and lines that took, with io.EOF at the end. A *badInput is about these
	// bytes, any other error about the file.
	next(f *txn.Feed) (bytes int64, lines int, err error)
}

// badInput tells why something is no event.
type badInput struct {
	column int
	what   string
	input  []byte
}

func (b *badInput) Error() string { return b.what }

// Open opens a file, all files of a directory in the order of their names, or standard
// input for "-", as a source of the application's events.
func Open(app *txn.App, name string, opts Options) (*Files, error) {
	s := &Files{app: app, opts: opts, names: []string{name}}
	if name == "-" {
		in := opts.Stdin
		if in == nil {
			in = os.Stdin
		}
		s.waiting = newPump(in)
	} else {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			if s.names, err = filesOf(name); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range s.names {
		format := opts.Format
		if format == "" {
			format = formatOf(n)
		}
		if n == "-" && opts.Format == "" {
			return nil, fmt.Errorf("standard input has no name that tells its format: give --format, one of %s", strings.Join(Formats(), ", "))
		}
		if !slices.Contains(Formats(), format) {
			return nil, fmt.Errorf("%s: format %q: one of %s is allowed", n, format, strings.Join(Formats(), ", "))
		}
	}
	return s, nil
}

func filesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(name) // of what a link points to
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() && e.Name()[0] != '.' {
			names = append(names, name)
		}
	}
	return names, nil
}

// Resume implements [txn.Resumer]. Standard input has to be the same from its beginning.
func (s *Files) Resume(p txn.Position) error {
	i := slices.Index(s.names, p.File)
	if i < 0 {
		return fmt.Errorf("the input that was read up to %s, byte %d, does not have that file", p.File, p.Offset)
	}
	s.names = s.names[i:]
	s.skip, s.at = p.Offset, p
	return nil
}

// Fill implements [txn.Source]. It waits for one event; more are read as far as they
// are there.
func (s *Files) Fill(ctx context.Context, f *txn.Feed, limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	s.ctx = ctx
	if s.waiting != nil {
		s.waiting.ctx = ctx
	}
	err := s.fill(ctx, f, limit)
	if s.at.File != "" {
		f.Mark(s.at)
	}
	return err
}

func (s *Files) fill(ctx context.Context, f *txn.Feed, limit int) error {
	for n := range limit {
		if s.file == nil {
			if err := s.open(); err != nil {
				return err
			}
		}
		if n > 0 && s.waiting != nil && !s.reader.ready() {
			break
		}
		if n&255 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.one(f); err != nil {
			return err
		}
	}
	return nil
}

// open opens the next file where it was left.
func (s *Files) open() (err error) {
	if len(s.names) == 0 {
		return io.EOF
	}
	name := s.names[0]
	if s.waiting != nil {
		s.file, err = program.Decompress(s.waiting)
	} else {
		s.file, err = program.Open(name)
	}
	if err != nil {
		return err
	}
	s.in = bufio.NewReaderSize(s.file, 256<<10)
	format := s.opts.Format
	if format == "" {
		format = formatOf(name)
	}
	if s.reader, err = newReader(format, s.app, s); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.reader.begin()
	if s.at.File != name {
		s.at = txn.Position{File: name}
	}
	if _, binary := s.reader.(*binReader); !binary {
		if err := s.passMark(); err != nil {
			return err
		}
	}
	if s.skip == 0 {
		return nil
	}
	if c, ok := s.reader.(*csvReader); ok { // whose header says what follows
		n, _, err := c.next(nil)
		if err != nil {
			return s.fail(err)
		}
		s.skip -= n
	}
	n, err := io.CopyN(io.Discard, s.in, s.skip)
	if err != nil {
		return fmt.Errorf("%s has %d bytes less than were read of it before: %w", name, s.skip-n, io.ErrUnexpectedEOF)
	}
	s.skip = 0
	return nil
}

// passMark passes over the byte order mark that some programs put in front of text.
func (s *Files) passMark() error {
	const mark = "\xef\xbb\xbf"
	if head, _ := s.in.Peek(len(mark)); string(head) != mark { // a file may be shorter
		return nil
	}
	if s.skip > 0 {
		s.skip -= int64(len(mark))
	} else {
		s.at.Offset += int64(len(mark))
	}
	_, err := s.in.Discard(len(mark))
	return err
}

// one reads one event, or what is to be one.
func (s *Files) one(f *txn.Feed) error {
	n, lines, err := s.reader.next(f)
	var bad *badInput
	switch {
	case errors.As(err, &bad):
		if err := s.discard(f, bad); err != nil {
			return err
		}
	case errors.Is(err, io.EOF):
		err := s.file.Close()
		s.file, s.names = nil, s.names[1:]
		if err == nil && len(s.names) == 0 {
			return io.EOF
		}
		return err
	case err != nil:
		return s.fail(err)
	}
	s.at.Offset += n
	s.at.Line += lines
	return nil
}

// letter is a dead letter.
type letter struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Reason string `json:"reason"`
	Input  string `json:"input,omitempty"`
	Bytes  []byte `json:"bytes,omitempty"` // of an input that is no text, in base64
}

func (s *Files) discard(f *txn.Feed, bad *badInput) error {
	if !s.opts.Discard {
		return s.fail(bad)
	}
	l := letter{File: s.at.File, Line: s.at.Line + 1, Column: bad.column, Reason: bad.what}
	if _, binary := s.reader.(*binReader); binary || !utf8.Valid(bad.input) {
		l.Bytes = bad.input
	} else {
		l.Input = string(bad.input)
	}
	text, err := json.Marshal(l)
	if err == nil {
		f.Discard(text)
	}
	return err
}

// fail makes an error tell where in the input it is.
func (s *Files) fail(err error) error {
	var bad *badInput
	if errors.As(err, &bad) {
		return &program.InputError{File: s.at.File, Line: s.at.Line + 1, Column: bad.column, What: bad.what}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &program.InputError{File: s.at.File, Line: s.at.Line + 1, Column: 1, What: err.Error()}
}

// Close closes what is open. A Fill under way comes to its end first; the context of
// one that waits has to be cancelled.
func (s *Files) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	switch {
	case s.file != nil: // which closes what is below it
		return s.file.Close()
	case s.waiting != nil && len(s.names) > 0:
		return s.waiting.Close()
	}
	return nil
}

// hasLine reports whether the rest of a line is in memory.
func (s *Files) hasLine() bool {
	there, _ := s.in.Peek(s.in.Buffered()) // no more than is there
	return bytes.IndexByte(there, '\n') >= 0
}

// lineMax is how long a line or record may be.
const lineMax = 64 << 20

// line reads up to and including the end of a line. The bytes are valid until the next
// call; the end is not among them, but in n.
func (s *Files) line() (text []byte, n int64, err error) {
	s.long = s.long[:0]
	for {
		part, err := s.in.ReadSlice('\n')
		n += int64(len(part))
		if len(s.long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			if len(s.long)+len(part) > lineMax {
				return nil, n, fmt.Errorf("a line of more than %d bytes", lineMax)
			}
			s.long = append(s.long, part...)
			part = s.long
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && n > 0: // the last line may lack its end
		case err != nil:
			return nil, n, err
		}
		text = part
		if len(text) > 0 && text[len(text)-1] == '\n' {
			text = text[:len(text)-1]
		}
		if len(text) > 0 && text[len(text)-1] == '\r' {
			text = text[:len(text)-1]
		}
		return text, n, nil
	}
}
