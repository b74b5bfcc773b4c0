package vfs

import (
	"errors"
	"os"
	"syscall"
)

// onDescriptor runs a system call on the file, again if a signal interrupted it.
func onDescriptor(f *os.File, op string, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = call(int(fd)); !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil {
		failed = os.ErrClosed // the only reason for which Control refuses
	}
	if failed != nil {
		return &os.PathError{Op: op, Path: f.Name(), Err: failed}
	}
	return nil
}

func datasync(f *os.File) error { return onDescriptor(f, "fdatasync", syscall.Fdatasync) }

func allocate(f *os.File, from, to int64) error {
	err := onDescriptor(f, "fallocate", func(fd int) error { return syscall.Fallocate(fd, 0, from, to-from) })
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return f.Truncate(to)
	}
	return err
}
