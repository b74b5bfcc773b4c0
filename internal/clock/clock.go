// Package clock is the only source of time.
//
// Everything else asks a [Clock] so that tests replace it and a run stays a
// function of its inputs. Depguard and the floors test forbid time.Now elsewhere.
package clock

import "time"

// Clock tells monotonic time in nanoseconds since an arbitrary start. All
// methods may be called from any goroutine.
type Clock interface {
	NowNanos() int64
	// After returns a channel that receives once after d.
	After(d time.Duration) <-chan time.Time
}

// System is the machine's monotonic clock.
type System struct{}

var start = time.Now()

// NowNanos returns the nanoseconds since the process started.
func (System) NowNanos() int64 { return int64(time.Since(start)) }

// After is time.After.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// NowNanos returns the system clock's nanoseconds since the process started.
func NowNanos() int64 { return int64(time.Since(start)) }

// Today returns the date and time of the calendar, for people.
func Today() time.Time { return time.Now() }
