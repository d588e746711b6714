package inject

import (
	"errors"
	"fmt"
)

// permanentError is one that trying again does not mend.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func permanent(format string, args ...any) error {
	return &permanentError{fmt.Errorf(format, args...)}
}

// IsPermanent reports whether an error of an Injector stays however often it is tried: the fault cannot be made like that.
func IsPermanent(err error) bool {
	p := (*permanentError)(nil)
	return errors.As(err, &p)
}
