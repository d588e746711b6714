// Package ws is the server's side of the WebSocket protocol, RFC 6455, on bytes: the opening handshake, and a Decoder and
// Append functions for frames. It does no I/O, and copies no message that comes in one frame.
//
// Extensions are not negotiated. permessage-deflate (RFC 7692) would need a window of 32 KiB for each client and direction,
// or compression of every message by itself; it would make framing a message once impossible where contexts are kept, and a
// compressed frame has to be inflated before its size is known. So a frame with a reserved bit is an error.
package ws

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Opcode is the kind of a frame.
type Opcode byte

// Opcodes.
const (
	Continuation Opcode = 0
	Text         Opcode = 1
	Binary       Opcode = 2
	Close        Opcode = 8
	Ping         Opcode = 9
	Pong         Opcode = 10
)

// Status codes of a close frame that the package sends.
const (
	StatusNormal       = 1000
	StatusGoingAway    = 1001
	StatusProtocol     = 1002
	StatusNone         = 1005 // never sent: a close frame without a code
	StatusInvalidData  = 1007
	StatusPolicy       = 1008
	StatusTooBig       = 1009
	StatusInternal     = 1011
	StatusTryAgain     = 1013
	maxControl         = 125
	maxCloseReason     = maxControl - 2
	finBit, maskBit    = 0x80, 0x80
	reservedBits       = 0x70
	length16, length64 = 126, 127
)

// Error ends a connection: it is sent as a close frame with the code.
type Error struct {
	Code   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("websocket: %s (close code %d)", e.Reason, e.Code) }

func protocolError(format string, args ...any) error {
	return &Error{StatusProtocol, fmt.Sprintf(format, args...)}
}

// Handler gets what a client sent. Payloads are valid during the call.
type Handler interface {
	// OnMessage gets a whole message; Text is valid UTF-8. An error ends the decoding.
	OnMessage(op Opcode, payload []byte) error
	// OnPing gets a ping, to be answered by a pong with the payload. Of several unanswered ones it is enough to answer the
	// last.
	OnPing(payload []byte) error
	// OnPong gets a pong.
	OnPong(payload []byte) error
	// OnClose gets a close frame: StatusNone if it has no code. Nothing follows it.
	OnClose(code int, reason []byte) error
}

// Limits of a Decoder, in bytes.
type Limits struct {
	Message   int // of all its frames
	Fragments int // of one message
}

// Decoder reads the frames of one client. The zero value with Limits set, which many may share, is ready.
type Decoder struct {
	Limits *Limits
	part   *part // of a message in fragments; nil: there is none
	closed bool
}

// part is the fragments of a message so far.
type part struct {
	message   []byte
	op        Opcode
	fragments int
}

// length is how many bytes a message in fragments has so far.
func (d *Decoder) length() int {
	if d.part == nil {
		return 0
	}
	return len(d.part.message)
}

// Pending returns how many bytes the message takes of which the rest that Decode left is the next part, with its parts
// before; 0: none is pending, or its length is not known yet.
func (d *Decoder) Pending(b []byte) int {
	f, err := d.header(b)
	if err != nil || f.op >= Close {
		return d.length()
	}
	return d.length() + f.length
}

// header is that of a frame.
type header struct {
	fin    bool
	op     Opcode
	mask   [4]byte
	size   int // of the header itself
	length int
}

// Decode handles the whole frames at the start of b and returns how many bytes they have. It unmasks in place. What is
// behind a close frame is consumed and ignored.
func (d *Decoder) Decode(b []byte, h Handler) (int, error) {
	done := 0
	for {
		if d.closed {
			return done + len(b), nil
		}
		f, err := d.header(b)
		if err != nil || f.size == 0 || len(b)-f.size < f.length {
			return done, err
		}
		payload := b[f.size : f.size+f.length : f.size+f.length]
		unmask(payload, f.mask)
		b, done = b[f.size+f.length:], done+f.size+f.length
		if err := d.frame(&f, payload, h); err != nil {
			return done, err
		}
	}
}

// header reads the header of the next frame; size 0: it is not complete. A frame that is not allowed is refused as soon as
// its header shows it.
func (d *Decoder) header(b []byte) (f header, err error) {
	if len(b) < 2 {
		return f, nil
	}
	f.fin, f.op = b[0]&finBit != 0, Opcode(b[0]&0x0f)
	length := uint64(b[1] &^ maskBit)
	switch {
	case b[0]&reservedBits != 0:
		return f, protocolError("reserved bits are %03b, allowed: 000, no extension was negotiated", b[0]&reservedBits>>4)
	case f.op > Binary && f.op < Close || f.op > Pong:
		return f, protocolError("opcode is %d, allowed: 0, 1, 2, 8, 9, 10", f.op)
	case b[1]&maskBit == 0:
		return f, protocolError("a frame is not masked, allowed: masked frames from a client")
	case f.op >= Close && !f.fin:
		return f, protocolError("a control frame (opcode %d) is a fragment, allowed: whole ones", f.op)
	case f.op >= Close && length > maxControl:
		return f, protocolError("a control frame (opcode %d) is longer than 125 bytes", f.op)
	case f.op == Continuation && d.part == nil:
		return f, protocolError("a continuation frame, and there is no message to continue")
	case (f.op == Text || f.op == Binary) && d.part != nil:
		return f, protocolError("a frame of opcode %d within a message in fragments, allowed: continuation or control frames", f.op)
	}
	size := 2
	switch length {
	case length16:
		if size += 2; len(b) < size {
			return f, nil
		}
		if length = uint64(binary.BigEndian.Uint16(b[2:])); length < length16 {
			return f, protocolError("a length of %d is in 2 bytes, allowed: the shortest form", length)
		}
	case length64:
		if size += 8; len(b) < size {
			return f, nil
		}
		if length = binary.BigEndian.Uint64(b[2:]); length>>16 == 0 || length>>63 != 0 {
			return f, protocolError("a length of %d is in 8 bytes, allowed: the shortest form, below 2^63", length)
		}
	}
	if f.op < Close && length > uint64(d.Limits.Message-d.length()) {
		return f, &Error{StatusTooBig, fmt.Sprintf("a message has more than %d bytes", d.Limits.Message)}
	}
	if len(b) < size+4 {
		return f, nil
	}
	f.mask = [4]byte(b[size:])
	f.size, f.length = size+4, int(length)
	return f, nil
}

func (d *Decoder) frame(f *header, payload []byte, h Handler) error {
	switch f.op {
	case Ping:
		return h.OnPing(payload)
	case Pong:
		return h.OnPong(payload)
	case Close:
		d.closed, d.part = true, nil
		code, reason, err := parseClose(payload)
		if err != nil {
			return err
		}
		return h.OnClose(code, reason)
	}
	p := d.part
	if f.fin && p == nil {
		return deliver(f.op, payload, h)
	}
	if p == nil {
		p = &part{op: f.op}
		d.part = p
	}
	if p.fragments++; p.fragments > d.Limits.Fragments {
		return &Error{StatusPolicy, fmt.Sprintf("a message has more than %d fragments", d.Limits.Fragments)}
	}
	p.message = append(p.message, payload...)
	if !f.fin {
		return nil
	}
	d.part = nil
	return deliver(p.op, p.message, h)
}

func deliver(op Opcode, payload []byte, h Handler) error {
	if op == Text && !utf8.Valid(payload) {
		return &Error{StatusInvalidData, "a text message is not valid UTF-8"}
	}
	return h.OnMessage(op, payload)
}

func parseClose(payload []byte) (int, []byte, error) {
	if len(payload) == 0 {
		return StatusNone, nil, nil
	}
	if len(payload) == 1 {
		return 0, nil, protocolError("a close frame has 1 byte, allowed: none, or a code of 2 bytes and a reason")
	}
	code := int(binary.BigEndian.Uint16(payload))
	switch {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
	default:
		return 0, nil, protocolError("close code is %d, allowed: 1000-1003, 1007-1014, 3000-4999", code)
	}
	if !utf8.Valid(payload[2:]) {
		return 0, nil, &Error{StatusInvalidData, "the reason of a close frame is not valid UTF-8"}
	}
	return code, payload[2:], nil
}

// unmask removes the mask, eight bytes at a time.
func unmask(b []byte, mask [4]byte) {
	m := uint64(binary.LittleEndian.Uint32(mask[:]))
	m |= m << 32
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^m)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= mask[i&3]
	}
}

// AppendHeader appends the header of a whole frame of a server.
func AppendHeader(dst []byte, op Opcode, length int) []byte {
	dst = append(dst, finBit|byte(op))
	switch {
	case length < length16:
		return append(dst, byte(length))
	case length < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, length16), uint16(length))
	}
	return binary.BigEndian.AppendUint64(append(dst, length64), uint64(length))
}

// AppendFrame appends a whole frame of a server.
func AppendFrame(dst []byte, op Opcode, payload []byte) []byte {
	return append(AppendHeader(dst, op, len(payload)), payload...)
}

// AppendClose appends a close frame. StatusNone is one without a code. A reason that is too long is cut.
func AppendClose(dst []byte, code int, reason string) []byte {
	if code == StatusNone {
		return AppendHeader(dst, Close, 0)
	}
	if len(reason) > maxCloseReason {
		end := maxCloseReason
		for end > 0 && !utf8.RuneStart(reason[end]) {
			end--
		}
		reason = reason[:end]
	}
	dst = AppendHeader(dst, Close, 2+len(reason))
	return append(binary.BigEndian.AppendUint16(dst, uint16(code)), reason...)
}
