package order

import "bytes"

// FixRefused is the record of a message of a FIX session that the grid refuses: the body of a
// record of kind refusal.
//
//	off size field              off size field
//	 0  u16  1                   8  u64  detail
//	 2  u16  code of the error  16  u16  size of the text
//	 4  u32  tag                18       the text, then the begin of the message
//
// With code FunctionRefused the detail is OrdRejReason (103), and reports have it: so has what a
// limit refuses, whose rule the text begins with.
type FixRefused struct {
	Code    uint16
	Tag     uint32
	Detail  uint64
	Text    []byte
	Message []byte // its begin
}

const (
	// FixRefusedByGrid are the first two bytes of a FixRefused.
	FixRefusedByGrid = 1

	fixRefusedSize = 18
	maxRefusedText = 512
)

// AppendFixRefused appends the record, at most MaxFixBody bytes: with at most 512 of the text, and
// as much of the message as has room.
func AppendFixRefused(dst []byte, code uint16, tag uint32, detail uint64, text string, message []byte) []byte {
	at := len(dst)
	text = text[:min(len(text), maxRefusedText)]
	dst = le.AppendUint32(le.AppendUint16(le.AppendUint16(dst, FixRefusedByGrid), code), tag)
	dst = append(le.AppendUint16(le.AppendUint64(dst, detail), uint16(len(text))), text...)
	return append(dst, message[:min(len(message), MaxFixBody-(len(dst)-at))]...)
}

// ParseFixRefused reads the record; false if it is another one.
func ParseFixRefused(b []byte) (r FixRefused, ok bool) {
	if len(b) < fixRefusedSize || le.Uint16(b) != FixRefusedByGrid {
		return r, false
	}
	n := fixRefusedSize + int(le.Uint16(b[16:]))
	if n > len(b) {
		return r, false
	}
	return FixRefused{Code: le.Uint16(b[2:]), Tag: le.Uint32(b[4:]), Detail: le.Uint64(b[8:]), Text: b[fixRefusedSize:n], Message: b[n:]}, true
}

// msgType returns the MsgType (35) of the message, which is its third field: TagValue finds nothing
// in a message whose end is cut off.
func (r *FixRefused) msgType() []byte {
	rest := r.Message
	for range 2 {
		_, rest, _ = bytes.Cut(rest, []byte{1})
	}
	field, _, whole := bytes.Cut(rest, []byte{1})
	if value, is := bytes.CutPrefix(field, []byte("35=")); is && whole {
		return value
	}
	return nil
}
