//go:build !linux

package peers

import (
	"errors"

	"github.com/heddle-stream/heddle/bench"
)

// Cold returns stores whose files the system does not keep in memory: on Linux only.
func Cold(bench.OpenStore) bench.OpenStore {
	return func(bench.Way, string, int64) (bench.WindowStore, error) {
		return nil, errors.New("files can be dropped from memory on Linux only")
	}
}
