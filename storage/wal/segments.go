package wal

import (
	"errors"
	"fmt"
	"path"

	"github.com/heddle-stream/heddle/storage/vfs"
)

// recover finds the end of the log and begins a segment there.
func (l *Log) recover() error {
	// Names may be as another process left them, without a sync. A file must not be
	// used again while a crash could still give it its old name back.
	if err := l.sys.SyncDir(l.dir); err != nil {
		return err
	}
	files, err := list(l.sys, l.dir)
	if err != nil {
		return err
	}
	l.segs, l.seq = files.segments, files.seq
	if err := l.keep(files.spares); err != nil {
		return err
	}
	if len(l.segs) > 0 {
		if err := l.settle(l.segs[len(l.segs)-1]); err != nil {
			return err
		}
	}
	if err := l.roll(0); err != nil {
		return err
	}
	return l.dropEmpty()
}

// keep takes the spare files and removes those that are too many or too long.
func (l *Log) keep(spares []string) error {
	for _, name := range spares {
		size, err := l.sys.Size(path.Join(l.dir, name))
		if err != nil {
			return err
		}
		if len(l.spares) < l.opts.Spares && size <= l.opts.SegmentSize {
			l.spares = append(l.spares, name)
			continue
		}
		if err := l.sys.Remove(path.Join(l.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// settle reads the last segment to its end, makes what it holds survive a crash
// and cuts off what does not belong to it.
func (l *Log) settle(last segment) error {
	s, err := openSegment(l.sys, l.dir, last.seq)
	if err != nil {
		return err
	}
	defer s.file.Close()
	for err == nil {
		_, err = s.batch()
	}
	if err := s.tail(err); err != nil {
		return err
	}
	l.next, l.durable = s.next, s.next

	f, err := l.sys.Edit(s.name)
	if err != nil {
		return err
	}
	err = l.rewrite(s, f)
	return errors.Join(err, f.Close())
}

// rewrite writes the last batch once more: only then does a sync speak of it,
// see the package's comment. All batches before it were synced before it was
// begun.
func (l *Log) rewrite(s *scanner, f vfs.File) error {
	if s.last > 0 {
		batch := make([]byte, s.off-s.last)
		if n, err := f.ReadAt(batch, s.last); n < len(batch) {
			return fmt.Errorf("read %s at offset %d: %w", s.name, s.last, err)
		}
		if _, err := f.WriteAt(batch, s.last); err != nil {
			return err
		}
	}
	if err := f.Truncate(s.off); err != nil {
		return err
	}
	return f.Sync()
}

// roll begins a segment with room for a batch of need bytes. The file has its
// header, synced, before it has a segment's name, and its name before it gets a
// record.
func (l *Log) roll(need int64) error {
	seg := segment{seq: l.seq + 1, first: l.durable}
	room := max(l.opts.SegmentSize, headerSize+need)
	var name string
	var f vfs.File
	var err error
	if n := len(l.spares); n > 0 {
		name = path.Join(l.dir, l.spares[n-1])
		l.spares = l.spares[:n-1]
		f, err = l.sys.Edit(name)
	} else {
		name = path.Join(l.dir, fileName(seg.seq, spareSuffix))
		f, err = l.sys.Create(name)
	}
	if err != nil {
		return err
	}
	if err := l.begin(f, name, seg, room); err != nil {
		return errors.Join(err, f.Close())
	}
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	l.file, l.seq, l.off, l.room, l.confirmed = f, seg.seq, headerSize, room, true
	l.segs = append(l.segs, seg)
	return nil
}

func (l *Log) begin(f vfs.File, name string, seg segment, room int64) error {
	if err := f.Preallocate(room); err != nil {
		return err
	}
	if _, err := f.WriteAt(appendHeader(nil, seg), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := l.sys.Rename(name, path.Join(l.dir, seg.name())); err != nil {
		return err
	}
	return l.sys.SyncDir(l.dir)
}

// dropEmpty drops segments without records that earlier openings left.
func (l *Log) dropEmpty() error {
	var kept []segment
	for i, s := range l.segs {
		if i+1 == len(l.segs) || s.first < l.segs[i+1].first {
			kept = append(kept, s)
		} else if err := l.drop(s); err != nil {
			return err
		}
	}
	l.segs = kept
	return nil
}

// drop takes a segment off the log. The change of its name is synced: the file
// must not come back after it is used again, nor stay when one behind it has gone.
func (l *Log) drop(s segment) error {
	name := path.Join(l.dir, s.name())
	size, err := l.sys.Size(name)
	if err != nil {
		return err
	}
	if len(l.spares) < l.opts.Spares && size <= l.opts.SegmentSize {
		spare := fileName(s.seq, spareSuffix)
		if err := l.sys.Rename(name, path.Join(l.dir, spare)); err != nil {
			return err
		}
		l.spares = append(l.spares, spare)
	} else if err := l.sys.Remove(name); err != nil {
		return err
	}
	return l.sys.SyncDir(l.dir)
}

// TruncateBefore drops segments of which all records are below the number, which
// is at most Durable. Records below it may stay, those from it on do stay. After
// an error the log is unusable.
func (l *Log) TruncateBefore(number uint64) error {
	if l.err != nil {
		return l.err
	}
	if number > l.durable {
		return fmt.Errorf("truncate before record %d, only those before %d are committed", number, l.durable)
	}
	for len(l.segs) > 1 && l.segs[1].first <= number {
		s := l.segs[0]
		l.segs = l.segs[1:] // even a log that fails here must not read what may be gone
		if err := l.drop(s); err != nil {
			return l.fail(fmt.Sprintf("truncate before record %d", number), err)
		}
	}
	return nil
}
