package postgres

import (
	"encoding/binary"
	"io"
)

// signature begins data of COPY in the binary format: fixed bytes, flags, length of an extension.
const signature = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// fillBytes is how much is encoded at a time, and a row more.
const fillBytes = 32 << 10

// copyData is rows as data of COPY. It encodes as it is read: the memory it takes does not grow with the batch.
type copyData struct {
	next  func() bool // appends a row to buf, or none for an entry without; false: there are no more
	buf   []byte      // encoded and not read
	off   int
	ended bool
	err   error // of next
}

// begin starts data over, in the same memory.
func (d *copyData) begin(next func() bool) {
	*d = copyData{next: next, buf: append(d.buf[:0], signature...)}
}

// Read implements io.Reader.
func (d *copyData) Read(p []byte) (n int, err error) {
	for {
		c := copy(p[n:], d.buf[d.off:])
		d.off += c
		n += c
		switch {
		case n == len(p):
			return n, nil
		case d.err != nil:
			return n, d.err
		case d.ended:
			return n, io.EOF
		}
		d.buf, d.off = d.buf[:0], 0
		d.fill()
	}
}

func (d *copyData) fill() {
	for len(d.buf) < fillBytes && d.err == nil {
		if !d.next() {
			d.buf = be.AppendUint16(d.buf, 0xffff)
			d.ended = true
			return
		}
	}
}

// Seconds and nanoseconds of PostgreSQL's epoch, 2000-01-01.
const (
	epochSeconds = 946684800
	dayNs        = 24 * 3600 * 1e9
)

// microseconds since PostgreSQL's epoch, rounded down.
func microseconds(unixNs int64) int64 {
	us := unixNs / 1000
	if unixNs%1000 < 0 {
		us--
	}
	return us - epochSeconds*1e6
}

var be = binary.BigEndian

func appendBytes(b, v []byte) []byte { return append(be.AppendUint32(b, uint32(len(v))), v...) }
func appendInt64(b []byte, v int64) []byte {
	return be.AppendUint64(be.AppendUint32(b, 8), uint64(v))
}
func appendInt32(b []byte, v int32) []byte {
	return be.AppendUint32(be.AppendUint32(b, 4), uint32(v))
}
func appendNull(b []byte) []byte { return be.AppendUint32(b, 0xffffffff) }

// appendString appends text, NULL for none.
func appendString(b []byte, v string) []byte {
	if v == "" {
		return appendNull(b)
	}
	return append(be.AppendUint32(b, uint32(len(v))), v...)
}

func appendBool(b []byte, v bool) []byte {
	b = be.AppendUint32(b, 1)
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
