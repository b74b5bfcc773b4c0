package invariants

import "fmt"

// Check panics with the formatted message when ok is false. Callers guard it
// with Enabled: its arguments are boxed even when the check holds.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant violated: " + fmt.Sprintf(format, args...))
	}
}
