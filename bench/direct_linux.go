package bench

import (
	"os"
	"syscall"
	"unsafe"
)

// openDirect opens a file for reading without the system's cache where the file system
// can do that.
func openDirect(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return os.Open(name)
	}
	return f, nil
}

// alignedBuffer returns a buffer that direct reads may go to.
func alignedBuffer() []byte {
	const size, page = 4 << 20, 4096
	buf := make([]byte, size+page)
	at := int(-uintptr(unsafe.Pointer(&buf[0])) & (page - 1))
	return buf[at : at+size]
}
