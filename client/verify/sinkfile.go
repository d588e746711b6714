package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// sinkFile is one file of the file sink, read line by line.
type sinkFile struct {
	path    string
	f       *os.File // nil: a node reads it
	r       *bufio.Reader
	number  int // of the line read last
	first   uint64
	skipped uint64 // the last line of what the log does not hold any more, 0 if none
	line    sinkLine
	have    bool // line is not used yet
	over    bool
}

// sinkLine is what is compared of a line.
type sinkLine struct {
	seq, epoch, lineage, hash uint64
	kind                      string
	fix                       []byte
}

// maxLine holds the largest order with every byte escaped, and the columns.
const maxLine = 4*order.MaxPayload + 1024

func openSinkFile(path string) (*sinkFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &sinkFile{path: path, f: f, r: bufio.NewReaderSize(f, maxLine)}
	if err := s.header(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sinkFile) close() {
	if s.f != nil {
		s.f.Close() //nolint:errcheck // read only
	}
}

func (s *sinkFile) header() error {
	header, err := s.r.ReadSlice('\n')
	s.number = 1
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
		return err
	case err != nil || !bytes.HasPrefix(header, []byte("# ordergrid sink v1")):
		return fmt.Errorf("%s: the first line is %.60q, allowed: one that begins with \"# ordergrid sink v1\"", s.path, bytes.TrimSpace(header))
	}
	return nil
}

// lineError is an error of a line, not of reading it.
type lineError struct{ error }

func isLineError(err error) bool {
	var e lineError
	return errors.As(err, &e)
}

// read takes the next line. A last line without its newline is being written and is ignored.
func (s *sinkFile) read() error {
	for {
		b, err := s.r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return lineError{fmt.Errorf("the line has more than %d bytes", maxLine)}
			}
			return err
		}
		s.number++
		b = b[:len(b)-1]
		if bytes.HasPrefix(b, []byte("#")) {
			continue
		}
		if s.line, err = parseSinkLine(b); err != nil {
			return lineError{err}
		}
		s.have = true
		return nil
	}
}

func parseSinkLine(b []byte) (l sinkLine, err error) {
	f := bytes.Split(b, []byte{'\t'})
	if len(f) != 10 {
		return l, fmt.Errorf("it has %d columns, allowed: 10", len(f))
	}
	if l.seq, err = strconv.ParseUint(string(f[0]), 10, 64); err != nil || l.seq == 0 {
		return l, fmt.Errorf("column 1 (seq) is %.40q, allowed: a number of 1 or more", f[0])
	}
	if l.epoch, err = strconv.ParseUint(string(f[1]), 10, 64); err != nil || l.epoch == 0 {
		return l, fmt.Errorf("column 2 (epoch) is %.40q, allowed: a number of 1 or more", f[1])
	}
	if l.lineage, err = strconv.ParseUint(string(f[2]), 10, 64); err != nil || l.lineage == 0 {
		return l, fmt.Errorf("column 3 (lineage) is %.40q, allowed: a number of 1 or more", f[2])
	}
	if l.hash, err = strconv.ParseUint(string(f[7]), 16, 64); err != nil || len(f[7]) != 16 {
		return l, fmt.Errorf("column 8 (hash) is %.40q, allowed: 16 hex digits", f[7])
	}
	l.kind, l.fix = string(f[3]), f[9]
	return l, nil
}

// sinkText is a FIX message as the sink prints it: SOH as '|', other special
// bytes as \xNN.
func sinkText(fix []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(fix))
	for _, c := range fix {
		switch {
		case c == 1:
			out = append(out, '|')
		case c < ' ' || c == 0x7f || c == '|' || c == '\\':
			out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

func isLogError(err error) bool {
	var e *client.LogError
	return errors.As(err, &e)
}
