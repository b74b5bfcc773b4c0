// Package vfs is the seam between what must survive a crash and the system that
// keeps it: a small interface of file operations, so that tests can put a disk
// below the log that lies, tears, fills up or loses its power at any operation.
//
// What a program may count on is little, and [FS] promises no more than that:
//
//   - Bytes survive when [File.Sync] has returned after they were written. Of
//     what was written since, any part may be there, in any order.
//   - A name survives when [FS.SyncDir] of its directory has returned after it
//     was made, moved or removed. Of the changes since, any may have happened;
//     a rename is there as a whole or not at all.
//   - When Sync fails, the bytes are lost, although reading still shows them. A
//     later Sync that succeeds says nothing about them: the system has marked
//     them clean. Whoever sees Sync fail must stop using the file.
//
// [Disk] is the real thing, [Memory] a file system for tests that need none of
// this, [Crashable] one that does to unsynced bytes and names whatever the rules
// above allow. [Faulty] goes on top of any of them: it numbers operations, shows
// each to a hook that may refuse it, and injects full disks, short writes and
// failed syncs. A crash at operation n is a hook that refuses everything from n
// on, followed by [Crashable.Crash]: what an operation leaves behind when it is
// interrupted half way is what a crash just after it may leave.
//
// Names are paths with slashes. They are passed to the system as they are by
// Disk, and cleaned and looked up below one root by the others.
package vfs
