//go:build !linux

package vfs

import "os"

func datasync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, _, to int64) error { return f.Truncate(to) }
