package fix

import "strconv"

// Body is the fields of a message after its header.
type Body struct {
	b     []byte
	stamp stamper
}

// Reset begins a new body.
func (b *Body) Reset() { b.reset() }

// Fields returns the fields, valid until the next call of another method.
func (b *Body) Fields() []byte { return b.b }

// time appends a time.
func (b *Body) time(tag int, ns int64) { b.b = append(b.stamp.append(appendTag(b.b, tag), ns), soh) }

// Bytes appends a field; an empty value is left out.
func (b *Body) Bytes(tag int, v []byte) {
	if len(v) > 0 {
		b.b = append(appendTag(b.b, tag), v...)
		b.b = append(b.b, soh)
	}
}

// String appends a field; an empty value is left out.
func (b *Body) String(tag int, v string) {
	if v != "" {
		b.b = append(appendTag(b.b, tag), v...)
		b.b = append(b.b, soh)
	}
}

// Byte appends a field of one character; 0 is left out.
func (b *Body) Byte(tag int, v byte) {
	if v != 0 {
		b.b = append(appendTag(b.b, tag), v, soh)
	}
}

// Number appends a field.
func (b *Body) Number(tag int, n uint64) {
	b.b = append(strconv.AppendUint(appendTag(b.b, tag), n, 10), soh)
}

// Append appends fields that another Body has.
func (b *Body) Append(fields []byte) { b.b = append(b.b, fields...) }

// Len returns how many bytes the body has.
func (b *Body) Len() int { return len(b.b) }

func (b *Body) reset() *Body {
	b.b = b.b[:0]
	return b
}

func appendTag(dst []byte, tag int) []byte {
	return append(strconv.AppendInt(dst, int64(tag), 10), '=')
}

// text makes a value of what may have bytes that a value cannot have.
func text(s string) string {
	const limit = 512
	for i := range len(s) {
		if s[i] < 0x20 || i == limit {
			b := []byte(s[:min(len(s), limit)])
			for j, c := range b {
				if c < 0x20 {
					b[j] = '?'
				}
			}
			return string(b)
		}
	}
	return s
}

// header is what a message has before its body.
type header struct {
	msgType  string
	seq      uint64
	timeNs   int64
	resent   bool  // with PossDupFlag
	origNs   int64 // if resent
	lastDone uint64
	hasLast  bool // with LastMsgSeqNumProcessed
}

// message appends a whole message.
func (a *Acceptor) message(dst []byte, id *ID, h *header, body []byte) []byte {
	b := a.inner.reset()
	b.String(35, h.msgType)
	b.Number(34, h.seq)
	if h.resent {
		b.Byte(43, 'Y')
	}
	b.String(49, id.Acceptor)
	b.b = append(a.stamp.append(appendTag(b.b, 52), h.timeNs), soh)
	b.String(56, id.Initiator)
	if h.resent {
		b.b = append(a.origStamp.append(appendTag(b.b, 122), h.origNs), soh)
	}
	if h.hasLast {
		b.Number(369, h.lastDone)
	}
	start := len(dst)
	dst = append(append(append(dst, "8="...), versions[id.Version].begin...), soh)
	dst = append(dst, "9="...)
	dst = append(strconv.AppendInt(dst, int64(len(b.b)+len(body)), 10), soh)
	dst = append(append(dst, b.b...), body...)
	sum := checkSum(dst[start:])
	return append(dst, '1', '0', '=', '0'+sum/100, '0'+sum/10%10, '0'+sum%10, soh)
}
