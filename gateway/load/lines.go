package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// lines reads a file line by line: what sources of FIX and of JSON have in common.
type lines struct {
	in      *input
	r       *bufio.Scanner
	line    int64
	longest int
	allowed string // what a line is, for the error of a longer one
}

func newLines(in *input, longest int, allowed string) lines {
	r := bufio.NewScanner(in)
	r.Buffer(make([]byte, 1<<16), longest)
	return lines{in: in, r: r, longest: longest, allowed: allowed}
}

// next returns the next line, valid until it is called again; io.EOF behind the last one.
func (s *lines) next() ([]byte, error) {
	if s.r.Scan() {
		s.line++
		return s.r.Bytes(), nil
	}
	switch err := s.r.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s: line %d has more than %d bytes, allowed: %s", s.in.name, s.line+1, s.longest, s.allowed)
	default:
		return nil, fmt.Errorf("%s: line %d: %w", s.in.name, s.line+1, err)
	}
}

// Progress implements Source.
func (s *lines) Progress() (read, total int64) { return s.in.read.Load(), s.in.size }

// ID implements Source.
func (s *lines) ID() string { return s.in.id }

// Close implements Source.
func (s *lines) Close() error { return s.in.Close() }
