package program

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// InputError tells where an input cannot be read as what it should be. Column
// is the byte column, from 1, at which the offending field begins, or at which
// quotes go wrong.
type InputError struct {
	File         string
	Line, Column int
	What         string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.What)
}

// zstdWindow bounds what a .zst file may ask for in memory.
const zstdWindow = 128 << 20

// Open opens a file that is plain, gzip or zstd, which its first bytes tell and
// not its name.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err // names the file
	}
	r, err := Decompress(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Decompress returns the contents of r, which are plain, gzip or zstd. Closing
// the result closes r; when there is an error, r is the caller's to close.
func Decompress(r io.ReadCloser) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		return &input{z, func() error { return errors.Join(z.Close(), r.Close()) }}, nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return &input{z, func() error { z.Close(); return r.Close() }}, nil
	}
	return &input{b, r.Close}, nil
}

type input struct {
	io.Reader
	close func() error
}

func (in *input) Close() error { return in.close() }

// Beside returns the name of the file that belongs to a file by its name: in the
// base name, the last occurrence of part is replaced, and the compression may be
// another one. The flag is what the error recommends when there is none.
func Beside(path, part, replacement, flag string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	dir, base := filepath.Split(path)
	at := strings.LastIndex(base, part)
	if at < 0 {
		return "", &ParamError{flag, "", fmt.Sprintf("the file that belongs to %s is wanted; only for a name with %q is it known", path, part)}
	}
	name := dir + base[:at] + replacement + base[at+len(part):]
	bare := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	for _, candidate := range []string{name, bare, bare + ".gz", bare + ".zst"} {
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() {
			return candidate, nil
		}
	}
	return "", &ParamError{flag, "", fmt.Sprintf("the file that belongs to %s is wanted; there is no %s", path, name)}
}
