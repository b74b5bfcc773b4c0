package wal

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/storage/vfs"
)

// forge makes a segment with batches of the payloads; change may alter the frames
// of each before they are sealed.
func forge(s segment, change func(frames []byte), batches ...[]string) []byte {
	out := appendHeader(nil, s)
	records := s.first
	var seals sealer
	for _, batch := range batches {
		start := len(out)
		for _, payload := range batch {
			out = appendFrame(out, 1, []byte(payload))
			records++
		}
		out = appendMark(out, mark{records: records, start: int64(start)})
		if change != nil {
			change(out[start:])
		}
		seals.seal(out[start:], s.seq, int64(start))
	}
	return out
}

// Checksums find accidents. What is good by its checksum and still contradicts the
// rest, as after a bug or with files of two logs in one directory, is found by
// what headers and marks say.
func TestContradictions(t *testing.T) {
	two := forge(segment{seq: 2, first: 2}, nil, []string{"c"})
	version2 := forge(segment{seq: 1}, nil)
	binary.LittleEndian.PutUint32(version2[8:], 2)
	cases := []struct {
		name   string
		files  [][]byte
		offset int64
		what   string // in the error, none if empty
		read   int
	}{
		{"good", [][]byte{forge(segment{seq: 1}, nil, []string{"a", "b"}), two}, 0, "", 3},
		{"other version", [][]byte{version2}, 0, "version 2 of the format, this program reads 1", 0},
		{"first records decrease", [][]byte{forge(segment{seq: 1, first: 3}, nil), two}, 0, "begins with record 2, the segment before with 3", 0},
		{"too many records", [][]byte{forge(segment{seq: 1}, nil, []string{"a"}, []string{"b", "x"}), two}, 67, "records up to 3, the segment ends before record 2", 1},
		{"too few records", [][]byte{forge(segment{seq: 1}, nil, []string{"a"}), two}, 67, "no record here", 1},
		{"no batches", [][]byte{forge(segment{seq: 1}, nil), two}, 32, "no record here", 0},
		{"miscounted", [][]byte{forge(segment{seq: 1, first: 0}, recount, []string{"a", "b"}), two}, 52, "with the log at record 9", 0},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			sys := &vfs.Memory{}
			for i, data := range c.files {
				put(t, sys, fileName(uint64(i+1), segmentSuffix), data)
			}
			n, err := count(sys)
			if c.what == "" && err != nil || n != c.read {
				t.Fatalf("%d records, %v; want %d", n, err, c.read)
			}
			if c.what == "" {
				return
			}
			var bad *CorruptError
			if !errors.As(err, &bad) || bad.Offset != c.offset || !strings.Contains(bad.What, c.what) {
				t.Fatalf("%v; want offset %d, %s", err, c.offset, c.what)
			}
		})
	}
}

// recount makes the mark at the end of a batch of one-byte payloads say 9, and
// its checksum fit.
func recount(frames []byte) {
	at := len(frames) - markSize
	copy(frames[at:], appendMark(nil, mark{records: 9, start: parseMark(frames[at:]).start}))
}

func put(t *testing.T, sys vfs.FS, name string, data []byte) {
	t.Helper()
	f, err := sys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
}

func count(sys vfs.FS) (int, error) {
	r, err := NewReader(sys, "", 0)
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// A torn batch may hold a copy of the log itself, for instance of its segment's
// marks. They are not where they were written, and do not make a torn tail look
// corrupt.
func TestCopiesOfMarksAreNoMarks(t *testing.T) {
	log := forge(segment{seq: 1}, nil, []string{"a"}, []string{"b"}, []string{"c"})
	torn := forge(segment{seq: 1}, nil, []string{"a"}, []string{"b", string(log), string(log)})
	torn[70]++
	sys := &vfs.Memory{}
	put(t, sys, fileName(1, segmentSuffix), torn)
	if n, err := count(sys); err != nil || n != 1 {
		t.Errorf("%d records, %v; want 1", n, err)
	}
}

// Marks are found wherever they lie in what is read at once.
func TestLaterMarkIsFoundAnywhere(t *testing.T) {
	for pad := readAhead - 3*markSize; pad < readAhead+markSize; pad++ {
		data := forge(segment{seq: 1}, nil, []string{"a"}, []string{string(make([]byte, pad))})
		data[40]++
		sys := &vfs.Memory{}
		put(t, sys, fileName(1, segmentSuffix), data)
		var bad *CorruptError
		if _, err := count(sys); !errors.As(err, &bad) || bad.Offset != headerSize {
			t.Fatalf("%d bytes between: %v", pad, err)
		}
	}
}
