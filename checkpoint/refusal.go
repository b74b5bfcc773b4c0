package checkpoint

import "fmt"

// RefusalError tells that a state directory, or a savepoint, is whole but not for the run
// that asks for it: it is of another program, other input or another output.
type RefusalError struct{ err error }

func (e *RefusalError) Error() string { return e.err.Error() }

// Unwrap returns what differs.
func (e *RefusalError) Unwrap() error { return e.err }

// NewRefusal makes a refusal of what differs.
func NewRefusal(err error) *RefusalError { return &RefusalError{err} }

func refuse(format string, args ...any) error {
	return &RefusalError{fmt.Errorf(format, args...)}
}
