// Package invariants holds checks that compile away.
//
// Code guards a check with `if invariants.Enabled { ... }`. Without the build
// tag `invariants` the constant is false and the compiler removes the block, so
// that what is checked in tests costs nothing in production.
package invariants
