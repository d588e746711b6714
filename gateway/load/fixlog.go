package load

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// fixSource reads the orders of a FIX log: messages with or without something before them on a line, such as a time,
// separated by SOH, | or ^A. Messages of other types than D, F and G are left out.
type fixSource struct {
	lines
	rest []byte // of the line, behind the message before
}

// longestMessage is the longest line of a FIX log: a message, and what stands before it.
const longestMessage = order.MaxPayload * 2

func newFIXLog(in *input) Source {
	return &fixSource{lines: newLines(in, longestMessage, "a message a line; is it a FIX log?")}
}

// Next implements Source.
func (s *fixSource) Next() (_ Row, err error) {
	for {
		begin := bytes.Index(s.rest, []byte("8=FIX"))
		if begin < 0 {
			if s.rest, err = s.next(); err != nil {
				return Row{}, err
			}
			continue
		}
		where := fmt.Sprintf("line %d", s.line)
		message, rest, err := cutMessage(s.rest[begin:])
		s.rest = rest
		switch {
		case err != nil:
			return Row{Where: where, Message: message, Err: err}, nil
		case isOrder(message):
			return Row{Where: where, Message: message}, nil
		}
	}
}

// cutMessage takes the message that b begins with, and gives it SOH as separators.
func cutMessage(b []byte) (message, rest []byte, err error) {
	cut := bytes.IndexAny(b, "\x01|^")
	if cut < 0 {
		return b, nil, errors.New("no field ends behind BeginString, allowed: SOH, | or ^A")
	}
	separator := b[cut : cut+1]
	if b[cut] == '^' {
		if separator = []byte("^A"); !bytes.HasPrefix(b[cut:], separator) {
			return b, nil, errors.New("^ is no separator of fields, allowed: SOH, | or ^A")
		}
	}
	last := bytes.Index(b, append(append([]byte(nil), separator...), "10="...))
	if last < 0 {
		return b, nil, errors.New("CheckSum (10) is missing")
	}
	end := last + len(separator) + len("10=000")
	if len(b) < end {
		return b, nil, errors.New("CheckSum (10) is cut off")
	}
	message, rest = b[:end], bytes.TrimPrefix(b[end:], separator)
	if separator[0] != order.SOH {
		message = bytes.ReplaceAll(message, separator, []byte{order.SOH})
	}
	return append(message[:len(message):len(message)], order.SOH), rest, nil
}

// isOrder reports whether the message is of a type that a grid takes.
func isOrder(message []byte) bool {
	i := bytes.Index(message, []byte("\x0135="))
	if i < 0 || i+6 > len(message) {
		return true // the grid's parser says what is wrong
	}
	kind := message[i+4]
	return (kind == 'D' || kind == 'F' || kind == 'G') && message[i+5] == order.SOH
}
