// Package spill lets the tables of an application be larger than memory: rows that
// were not used for long go into files, one [Log] for each table, and come back when
// somebody wants them.
//
// Which rows go, where each one is, and that a row is in one place only, is the business
// of storage/keyed; a log gives an address for bytes. Rows are added at its end, many at
// a time. A row that came back leaves a hole; when holes outweigh rows, the segment with the
// most of them is emptied, its rows added at the end anew, and its file freed. This is
// the log of Rosenblum and Ousterhout's file system (SOSP 1991), with the index in memory
// as in Bitcask (Sheehy and Smith, 2010).
//
// The files of a table are of use to this process only: a state directory has all that survives a
// crash in its log and its checkpoints. So they are removed as soon as they are made, where
// the system keeps a file for those who have it open, and nobody finds leavings of a
// process that was killed. A log that is kept ([NewKept]) is itself a part of checkpoints: what is
// written there is never written over, and a file that is given up stays until a checkpoint that
// does not want it counts. Each row has a checksum: a damaged one is an error with file and offset.
//
// # Layout
//
// A segment is rows one behind the other, each at a multiple of eight bytes:
//
//	crc32c of the rest uint32 | length uint32 | row | zeros
//
// An address is the place in units of eight bytes. Segment n has the addresses from n times
// the units of a segment on; the first eight bytes of each stay empty, so that no address
// is zero. Numbers of segments that are gone are used again.
package spill
