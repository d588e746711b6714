package fixorder

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

// CheckSet is Check of an order in which others may have set these tags: without them it has to be
// what was sent.
func (m *Maker) CheckSet(index int64, fix []byte, tags []uint32) error {
	return m.Check(index, unset(fix, m.buf, tags))
}

// CheckSet is Check of an order in which others may have set these tags.
func (m *Trading) CheckSet(index int64, fix []byte, tags []uint32) error {
	was := m.Make(index, 1, time.Time{}, time.Time{})
	return m.Check(index, unset(fix, was, tags))
}

const trailer = len("10=000\x01")

// unset returns a message as it was before tags of it were set: without those that was does not
// have, and with the value in was of those that it has. BodyLength and CheckSum are made again, of a
// message whose own are right; any other message is returned as it is.
func unset(fix, was []byte, tags []uint32) []byte {
	begin := bytes.Index(fix, []byte("\x0135=")) + 1
	if begin == 0 || len(fix) < begin+trailer || sealed(fix[:begin], fix[begin:len(fix)-trailer]) != string(fix) {
		return fix
	}
	var body []byte
	for rest := fix[begin : len(fix)-trailer]; len(rest) > 0; {
		n := bytes.IndexByte(rest, soh) + 1
		if n == 0 {
			return fix
		}
		field := rest[:n]
		rest = rest[n:]
		name, _, _ := bytes.Cut(field, []byte("="))
		if tag, err := strconv.ParseUint(string(name), 10, 32); err != nil || !slices.Contains(tags, uint32(tag)) {
			body = append(body, field...)
			continue
		}
		if at := bytes.Index(was, append(append([]byte{soh}, name...), '=')); at >= 0 {
			value := was[at+1:]
			body = append(body, value[:bytes.IndexByte(value, soh)+1]...)
		}
	}
	return []byte(sealed(fix[:begin], body))
}

// sealed is a message of this body; head begins with its version.
func sealed(head, body []byte) string {
	version := head[:bytes.IndexByte(head, soh)+1]
	b := append(slices.Clone(version), "9="...)
	b = append(strconv.AppendInt(b, int64(len(body)), 10), soh)
	b = append(b, body...)
	sum := sumBytes(b)
	b = append(b, "10=000\x01"...)
	putDigits(b[len(b)-4:len(b)-1], uint64(sum%256))
	return string(b)
}
