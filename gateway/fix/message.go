package fix

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/gateway/fix/dict"
)

// Limits of what one message may make the acceptor compute.
const (
	maxFields = 1024
	maxUser   = 64 // user-defined tags
)

// Version of a session.
type Version uint8

// Versions.
const (
	FIX42  Version = iota + 1
	FIX44          // FIX.4.4
	FIXT11         // FIXT.1.1 with FIX.5.0 SP2
)

var versions = [...]struct {
	begin string
	table func() *dict.Table
}{FIX42: {"FIX.4.2", dict.FIX42}, FIX44: {"FIX.4.4", dict.FIX44}, FIXT11: {"FIXT.1.1", dict.FIX50SP2}}

// String returns the BeginString.
func (v Version) String() string {
	if v < FIX42 || v > FIXT11 {
		return fmt.Sprintf("Version(%d)", uint8(v))
	}
	return versions[v].begin
}

// ParseVersion reads a BeginString.
func ParseVersion[T string | []byte](begin T) (v Version, ok bool) {
	for v = FIX42; v <= FIXT11; v++ {
		if versions[v].begin == string(begin) {
			return v, true
		}
	}
	return 0, false
}

func (v Version) table() *dict.Table { return versions[v].table() }

// field is a field of a message: its tag, and where in the message the value is.
type field struct {
	tag      int
	from, to int
}

// Message is a received message. It is valid during the call it is passed to.
type Message struct {
	raw    []byte
	fields []field
	now    Now

	begin, msgType           []byte
	sender, target           []byte // 49, 56
	sending, orig            []byte // 52, 122
	seq                      uint64
	hasSeq, possDup, hasOrig bool
}

// Raw returns the bytes of the message.
func (m *Message) Raw() []byte { return m.raw }

// Type returns MsgType (35).
func (m *Message) Type() []byte { return m.msgType }

// Now returns the time at which the message is handled.
func (m *Message) Now() Now { return m.now }

// FirstSent returns OrigSendingTime (122) of a message with PossDupFlag, unix nanoseconds;
// false for another one.
func (m *Message) FirstSent() (ns int64, ok bool) {
	if !m.possDup {
		return 0, false
	}
	return timestamp(m.orig)
}

// Seq returns MsgSeqNum (34).
func (m *Message) Seq() uint64 { return m.seq }

// Get returns the first value of a tag, nil if there is none.
func (m *Message) Get(tag int) []byte {
	for i := range m.fields {
		if f := &m.fields[i]; f.tag == tag {
			return m.raw[f.from:f.to]
		}
	}
	return nil
}

// Fields calls f for each field, in the order of the message, without BeginString,
// BodyLength and CheckSum.
func (m *Message) Fields(f func(tag int, value []byte)) {
	for i := range m.fields {
		f(m.fields[i].tag, m.raw[m.fields[i].from:m.fields[i].to])
	}
}

// Parse reads the fields of an order that was taken before, or of its beginning: what
// Instruction, Terms and Get return of it.
func (m *Message) Parse(raw []byte, v Version) {
	*m = Message{raw: raw, fields: m.fields[:0]}
	body, end := 0, bytes.LastIndexByte(raw, soh)+1
	for range 2 { // BeginString, BodyLength
		body += bytes.IndexByte(raw[body:], soh) + 1
	}
	if tail := end - trailerSize; tail > body && bytes.HasPrefix(raw[tail:], trailerMark[1:]) {
		end = tail
	}
	_ = m.split(body, end, v.table()) // as far as it goes
}

// parse splits a frame. A tag that is no number makes the message garbled.
func (m *Message) parse(f frame, t *dict.Table) *Garbled {
	*m = Message{raw: f.msg, fields: m.fields[:0]}
	m.begin = f.msg[2 : f.body-1]
	for i := range m.begin {
		if m.begin[i] == soh {
			m.begin = m.begin[:i]
			break
		}
	}
	return m.split(f.body, len(f.msg)-trailerSize, t)
}

// split finds the fields from i to end.
func (m *Message) split(i, end int, t *dict.Table) *Garbled {
	data := 0 // length of the data field that follows
	for i < end {
		tag, at, ok := readTag(m.raw[:end], i)
		if !ok || len(m.fields) == maxFields {
			return &Garbled{Tag: 0, Value: quote(m.raw[i:min(end, i+16)]), Allowed: fmt.Sprintf("tag=value, at most %d times", maxFields)}
		}
		to := at
		if t.Kind(tag) == dict.Data && data > 0 && at+data < end && m.raw[at+data] == soh {
			to = at + data
		}
		for to < end && m.raw[to] != soh {
			to++
		}
		data = 0
		if t.Kind(tag) == dict.Length {
			n, _ := number(m.raw[at:to])
			data = int(min(n, uint64(end)))
		}
		m.fields = append(m.fields, field{tag: tag, from: at, to: to})
		m.head(tag, m.raw[at:to])
		i = to + 1
	}
	return nil
}

// head keeps what the session layer reads of every message. Of a repeated field the first
// counts.
func (m *Message) head(tag int, v []byte) {
	switch tag {
	case 35:
		if m.msgType == nil {
			m.msgType = v
		}
	case 34:
		if !m.hasSeq {
			m.seq, m.hasSeq = number(v)
		}
	case 49:
		if m.sender == nil {
			m.sender = v
		}
	case 56:
		if m.target == nil {
			m.target = v
		}
	case 52:
		if m.sending == nil {
			m.sending = v
		}
	case 122:
		if !m.hasOrig {
			m.orig, m.hasOrig = v, true
		}
	case 43:
		m.possDup = len(v) == 1 && v[0] == 'Y'
	}
}

// readTag reads a tag number, which may have a sign, up to its equals sign.
func readTag(b []byte, i int) (tag, value int, ok bool) {
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start := i
	for ; i < len(b) && b[i]-'0' <= 9 && i-start < 9; i++ {
		tag = tag*10 + int(b[i]-'0')
	}
	if i == len(b) || b[i] != '=' || i == start {
		return 0, 0, false
	}
	if negative {
		tag = -tag
	}
	return tag, i + 1, true
}

// is reports whether the message is of a type with one character.
func (m *Message) is(msgType byte) bool { return len(m.msgType) == 1 && m.msgType[0] == msgType }

// flag reports whether a Boolean field is Y.
func (m *Message) flag(tag int) bool {
	v := m.Get(tag)
	return len(v) == 1 && v[0] == 'Y'
}
