// Package wal is a log of records that survives crashes: what a [Log.Commit] that
// returned has written is read again after any crash, in order, and of a commit
// that did not return either everything or nothing.
//
// # Shape
//
// A log is a directory of segment files. A segment begins with a header that has
// its sequence number and the number of its first record, and holds batches, one
// per commit: the frames of the records and a commit mark, which says where the
// batch began and how many records the log has after it.
//
//	0007.log  [header seq 7, first 120] [rec][rec][mark 122] [rec][mark 123]
//	0008.log  [header seq 8, first 123] [rec][rec][rec][mark 126] 0 0 0 0 ...
//
// A batch is written with one write, lies in one segment and is synced before
// the next one is begun. A checksum covers a frame together with its segment's
// sequence number and its place, so that a frame is good only where it was
// written: files are preallocated and used again, and what they held before is
// never taken for something new. The bytes are in docs/FORMATS.md.
//
// # Torn or corrupt
//
// A crash may leave anything where the last batch was being written, and nothing
// but that: everything before was synced, and headers are synced before a file
// gets a segment's name. So a bad place is explained by a crash only if nothing
// was written after it, and two things show that something was:
//
//   - A later segment. Its header has the number of its first record, up to which
//     the segment before must be good. What stands behind is left from a crash.
//   - A good commit mark of a batch that began behind the bad batch, in the same
//     segment. It is searched for byte by byte, since a bad length hides where the
//     next frame is. The mark of the bad batch itself shows nothing: a torn write
//     may have left just its end.
//
// In these cases reading ends with a [CorruptError]. Otherwise the tail is torn,
// was never confirmed to anybody, and is passed over. The one thing that cannot
// be told from a torn tail is damage to the very last batch; [Log.Close] therefore
// writes an empty batch behind it, so that of a log that was closed nothing can be
// lost unseen except that mark.
//
// # Opening
//
// [Open] never writes behind a torn tail: it begins a new segment, whose header
// settles where the one before ends. Before that it writes the last batch again,
// the same bytes to the same place, and syncs them: it may stand in the memory of
// the system only, because the process was killed before its sync or because the
// sync failed, and whoever reads a record here must be able to rely on it.
// Opening may be interrupted anywhere and begun again.
//
// # Failure
//
// After a failed write or sync nobody knows what is on the disk, and a sync that
// works afterwards does not mean that the bytes are there. The log then refuses
// everything but reading what was committed. It has to be opened again; the batch
// whose commit failed is then there or not.
package wal
