//go:build !linux

package nodefeatures

import (
	"errors"
	"runtime"
)

// Probe works on Linux only.
func Probe(string) (*Report, error) {
	return nil, errors.New("faults require the Linux kernel; this is " + runtime.GOOS)
}
