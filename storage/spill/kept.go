package spill

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-stream/heddle/storage/vfs"
)

// Mark is a log as a checkpoint has it: the segments and how much of each is filled. What is
// added later stands behind that, so that nothing of it is written over.
type Mark struct {
	Made     int           `json:"made"`    // files so far
	Segment  int           `json:"segment"` // bytes of one, by which rows are found
	Segments []SegmentMark `json:"segments"`
}

// SegmentMark is one file of a mark.
type SegmentMark struct {
	File   int   `json:"file"` // the number in its name
	Number int   `json:"number"`
	Took   int   `json:"took"`
	Size   int64 `json:"size"`
	Live   int64 `json:"live"` // bytes of rows that are wanted
}

// grave is the files that nobody wants but, maybe, a checkpoint that counts.
type grave struct {
	paths  []string
	marked int // so many were there at the last mark
}

// NewKept returns an empty log whose files stay for the next process: see [Log.Mark].
func NewKept(fs vfs.FS, name string, whole int) *Log {
	l := New(fs, name, whole)
	l.grave = &grave{}
	return l
}

// Mark makes what was added survive a crash, once the directory is synced, too, and returns what
// [OpenKept] has to know. Files that are given up from now on stay until [Log.Release].
func (l *Log) Mark() (m Mark, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.Made, m.Segment = l.made, l.whole
	for number, s := range *l.segments.Load() {
		if s == nil {
			continue
		}
		if size := s.size.Load(); s.synced < size || !s.marked {
			if err := s.f.Sync(); err != nil {
				return m, fmt.Errorf("rows on disk: sync %s: %w", s.path, err)
			}
			s.synced, s.marked = size, true
		}
		m.Segments = append(m.Segments, SegmentMark{s.file, number, s.took, s.size.Load(), s.live.Load()})
	}
	l.grave.marked = len(l.grave.paths)
	return m, nil
}

// Release removes the files that were given up before the last mark, whose checkpoint counts
// now.
func (l *Log) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.grave.marked > 0 {
		if err := l.fs.Remove(l.grave.paths[0]); err != nil {
			return fmt.Errorf("rows on disk: %w", err)
		}
		l.grave.paths = slices.Delete(l.grave.paths, 0, 1)
		l.grave.marked--
	}
	return nil
}

// OpenKept opens a log as it was at a mark.
func OpenKept(fs vfs.FS, name string, m Mark) (*Log, error) {
	if m.Segment < unit {
		return nil, fmt.Errorf("rows on disk: %s in files of %d bytes", name, m.Segment)
	}
	l := NewKept(fs, name, m.Segment)
	l.made = m.Made
	for _, sm := range m.Segments {
		s := &segment{path: l.path(sm.File), file: sm.File, kept: true, took: sm.Took, synced: sm.Size, marked: true}
		s.size.Store(sm.Size)
		s.live.Store(sm.Live)
		if err := l.adopt(s, sm.Number); err != nil {
			return nil, errors.Join(fmt.Errorf("rows on disk: %w", err), l.Close())
		}
	}
	return l, nil
}

// adopt opens the file of a segment and puts it in its place.
func (l *Log) adopt(s *segment, number int) error {
	size, err := l.fs.Size(s.path)
	if err == nil && size < s.size.Load() {
		err = fmt.Errorf("%s has %d bytes, the checkpoint knows of %d: it is damaged", s.path, size, s.size.Load())
	}
	if err != nil {
		return err
	}
	if s.f, err = l.fs.Edit(s.path); err != nil {
		return err
	}
	l.replace(number+s.took-1, nil)
	l.replace(number, s)
	l.live.Add(s.live.Load())
	l.holes.Add(s.size.Load() - s.live.Load())
	return nil
}

// Files returns the paths of the files of a log.
func (l *Log) Files() (paths []string) {
	for _, s := range *l.segments.Load() {
		if s != nil {
			paths = append(paths, s.path)
		}
	}
	return paths
}
