// Package storage looks at an application's tables as a whole, between batches:
// the canonical hash of their state and their rows in byte form.
//
// The typed rows themselves live in storage/keyed.
package storage
