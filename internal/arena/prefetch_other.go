//go:build !amd64 && !arm64

package arena

import "unsafe"

// Prefetch does nothing where we know of no instruction for it.
func Prefetch(unsafe.Pointer) {}
