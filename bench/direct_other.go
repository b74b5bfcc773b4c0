//go:build !linux

package bench

import "os"

func openDirect(name string) (*os.File, error) { return os.Open(name) }

func alignedBuffer() []byte { return make([]byte, 4<<20) }
