package fix

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

const soh = order.SOH

// beginMark is what a message begins with.
var (
	beginMark   = []byte("8=FIX")
	trailerMark = []byte("\x0110=")
)

const (
	maxBeginString = 16 // "8=FIXT.1.1" and more, without SOH
	maxLengthField = 8  // BodyLength has fewer digits
	trailerSize    = 7  // 10=ddd and SOH
)

// Garbled is a message that cannot be read, which FIX wants ignored.
type Garbled struct {
	Tag     int
	Value   string // as far as it helps
	Allowed string
}

func (g *Garbled) Error() string {
	return fmt.Sprintf("garbled message ignored: tag %d is %s; allowed: %s", g.Tag, g.Value, g.Allowed)
}

// frame is the first message of a stream of bytes.
type frame struct {
	skip int    // bytes before it that belong to no message
	msg  []byte // nil: it is not complete
	body int    // in msg: the first byte after BodyLength
	bad  *Garbled
}

// nextFrame finds the first message in. A message ends with the first CheckSum at or after
// the place that BodyLength names, as in QuickFIX's acceptance tests: one that names a
// wrong place is garbled as a whole, together with what it covers.
func nextFrame(in []byte, limit int) frame {
	start := bytes.Index(in, beginMark)
	if start < 0 {
		return frame{skip: max(0, len(in)-len(beginMark)+1)}
	}
	b := in[start:]
	i := bytes.IndexByte(b[:min(len(b), maxBeginString)], soh)
	if i < 0 {
		return incomplete(start, b, maxBeginString, 8, "FIX.4.2, FIX.4.4, FIXT.1.1")
	}
	length, at := 0, i+1
	for want := []byte("9="); len(want) > 0; at, want = at+1, want[1:] {
		if at == len(b) {
			return frame{skip: start}
		}
		if b[at] != want[0] {
			return garbledAt(start, 9, b[i+1:], "BodyLength as the second field")
		}
	}
	digits := at
	for ; at < len(b) && b[at]-'0' <= 9 && at-digits < maxLengthField; at++ {
		length = length*10 + int(b[at]-'0')
	}
	switch {
	case at-digits == maxLengthField:
		return garbledAt(start, 9, b[digits:], fmt.Sprintf("a number of at most %d", limit))
	case at == len(b):
		return frame{skip: start}
	case at == digits || b[at] != soh || length > limit:
		return garbledAt(start, 9, b[digits:], fmt.Sprintf("a number of at most %d", limit))
	}
	return frameEnd(b, start, at+1, length, limit)
}

// frameEnd finds the end of the message b, whose body of length bytes begins at body.
func frameEnd(b []byte, start, body, length, limit int) frame {
	due := body + length - 1 // of the SOH before CheckSum
	if len(b) < due+1+trailerSize {
		return frame{skip: start}
	}
	at := bytes.Index(b[due:], trailerMark)
	if at < 0 {
		return incomplete(start, b, body+limit+trailerSize, 9, "the bytes up to CheckSum")
	}
	at += due
	end := bytes.IndexByte(b[at+1:], soh)
	if end < 0 {
		return incomplete(start, b[at:], 2*trailerSize, 10, "three digits")
	}
	end += at + 2
	f := frame{skip: start, msg: b[:end:end], body: body}
	sum, ok := number(b[at+len(trailerMark) : end-1])
	switch {
	case at != due:
		f.bad = &Garbled{Tag: 9, Value: fmt.Sprint(length), Allowed: fmt.Sprintf("%d, the bytes from MsgType to CheckSum", at+1-body)}
	case end-at != 1+trailerSize || !ok || byte(sum) != order.CheckSum(b[:at+1]) || sum > 255:
		f.bad = &Garbled{Tag: 10, Value: quote(b[at+len(trailerMark) : end-1]), Allowed: fmt.Sprintf("%03d", order.CheckSum(b[:at+1]))}
	case !bytes.HasPrefix(b[body:], []byte("35=")):
		f.bad = &Garbled{Tag: 35, Value: quote(b[body:min(body+8, end)]), Allowed: "MsgType as the third field"}
	}
	return f
}

// incomplete waits for more bytes unless there are enough.
func incomplete(start int, b []byte, enough, tag int, allowed string) frame {
	if len(b) < enough {
		return frame{skip: start}
	}
	return garbledAt(start, tag, b, allowed)
}

// garbledAt passes over the beginning of a message whose end is not known.
func garbledAt(start, tag int, v []byte, allowed string) frame {
	return frame{skip: start + len(beginMark), bad: &Garbled{Tag: tag, Value: quote(v[:min(len(v), 16)]), Allowed: allowed}}
}
