package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddle-stream/heddle/bench"
)

// coldEvery is how often files are taken out of memory.
const coldEvery = 250 * time.Millisecond

// Cold returns stores whose files the system does not keep in memory: four times a second all that
// they have open is written and dropped from the page cache. This machine has more memory than the
// stores may use, and would hide what they read.
func Cold(open bench.OpenStore) bench.OpenStore {
	return func(way bench.Way, dir string, limit int64) (bench.WindowStore, error) {
		s, err := open(way, dir, limit)
		if err != nil {
			return nil, err
		}
		c := &cold{WindowStore: s, stop: make(chan struct{}), done: make(chan struct{})}
		go c.drop(dir)
		return c, nil
	}
}

type cold struct {
	bench.WindowStore
	stop, done chan struct{}
}

func (c *cold) drop(dir string) {
	defer close(c.done)
	tick := time.NewTicker(coldEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			dropCaches(dir)
		}
	}
}

// Close ends the dropping first.
func (c *cold) Close() error {
	close(c.stop)
	<-c.done
	return c.WindowStore.Close()
}

// dropCaches drops the files of a directory that this process has open, those without a name
// included. A file that is closed meanwhile does not matter.
func dropCaches(dir string) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range fds {
		name := filepath.Join("/proc/self/fd", e.Name())
		if to, err := os.Readlink(name); err != nil || !strings.HasPrefix(to, dir+"/") {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		fd := int(f.Fd())
		err = unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		if err == nil {
			err = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "page cache:", err)
		}
		_ = f.Close()
	}
}
