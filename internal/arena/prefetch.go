//go:build amd64 || arm64

package arena

import "unsafe"

// Prefetch has the processor fetch a cache line without waiting for it. A load would
// do so too, but stands in the way of all instructions behind it that do not fit
// into the processor's window.
//
//go:noescape
func Prefetch(p unsafe.Pointer)
