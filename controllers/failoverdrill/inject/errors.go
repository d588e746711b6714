package inject

import (
	"errors"
	"fmt"
)

// permanentError is an error that a retry does not fix.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func permanent(format string, args ...any) error {
	return &permanentError{fmt.Errorf(format, args...)}
}

// IsPermanent reports whether an error of an Injector cannot be fixed by a retry: the fault is not possible as
// requested.
func IsPermanent(err error) bool {
	p := (*permanentError)(nil)
	return errors.As(err, &p)
}
