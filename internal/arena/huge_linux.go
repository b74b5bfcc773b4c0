package arena

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks the kernel to back the memory with huge pages. It is a hint:
// when the kernel declines, everything works with small ones.
func adviseHuge(p unsafe.Pointer, size uintptr) {
	const madvHugepage = 14
	start := (uintptr(p) + hugePage - 1) &^ (hugePage - 1)
	end := (uintptr(p) + size) &^ (hugePage - 1)
	if end <= start {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Add(p, start-uintptr(p))), end-start)
	_ = syscall.Madvise(b, madvHugepage)
}
