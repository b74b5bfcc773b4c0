//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package vfs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lock refuses: two processes on one log would destroy it.
func lock(*os.File) error {
	return fmt.Errorf("no file locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
