// Package metamorphic runs one list of operations under many configurations and
// demands equal histories: it is for tests only.
//
// A [List] is an application whose events are themselves lists of operations,
// so that a test can draw any transaction: all kinds of operations, several on
// one key, reads of other keys before the operation and at the start of the
// transaction, ranges, conditional aborts, and functions that panic or divide by
// zero on values that a serial run may never show.
package metamorphic
