package arena

import (
	"syscall"
	"unsafe"
)

// adviseHuge asks the kernel to back the memory with huge pages, those at its ends
// included: a table's shards stand side by side, each smaller than a page. It is a
// hint: when the kernel declines, everything works with small ones.
func adviseHuge(p unsafe.Pointer, size uintptr) {
	const madvHugepage = 14
	start := uintptr(p) &^ (hugePage - 1)
	end := (uintptr(p) + size + hugePage - 1) &^ (hugePage - 1)
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, start, end-start, madvHugepage)
}
