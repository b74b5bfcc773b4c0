//go:build !linux

package arena

import "unsafe"

func adviseHuge(unsafe.Pointer, uintptr) {}
