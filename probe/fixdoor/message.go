package fixdoor

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

const soh = 1

// maxMessage bounds what a gateway may send as one message, in bytes.
const maxMessage = 64 << 10

// message is one from the gateway. It is valid until the next read.
type message struct {
	raw     []byte
	kind    byte // MsgType (35), 0 for one of several characters
	seq     uint64
	possDup bool
}

// next cuts the first message off; rest is nil when it is not whole.
func next(in []byte) (m message, rest []byte, err error) {
	if len(in) == 0 {
		return m, nil, nil
	}
	at := bytes.Index(in, []byte("\x019="))
	if at < 0 || at > 16 {
		if len(in) < 32 && bytes.HasPrefix([]byte("8=FIX"), in[:min(len(in), 5)]) {
			return m, nil, nil
		}
		return m, nil, fmt.Errorf("the gateway sends %.40q; allowed: BeginString and BodyLength first", in)
	}
	digits := in[at+3:]
	end := bytes.IndexByte(digits, soh)
	if end < 0 && len(digits) < 8 {
		return m, nil, nil
	}
	n, err := strconv.Atoi(string(digits[:max(end, 0)]))
	if err != nil || n < 1 || n > maxMessage {
		return m, nil, fmt.Errorf("BodyLength (9) of the gateway is %.10q; allowed: 1 to %d", digits, maxMessage)
	}
	body := at + 3 + end + 1
	whole := body + n + len("10=000|")
	if len(in) < whole {
		return m, nil, nil
	}
	raw := in[:whole:whole]
	if tail := raw[body+n:]; !bytes.Equal(tail[:3], []byte("10=")) || tail[6] != soh || string(tail[3:6]) != fmt3(order.CheckSum(raw[:body+n])) {
		return m, nil, fmt.Errorf("CheckSum (10) of the gateway is %.8q; allowed: %s", tail, fmt3(order.CheckSum(raw[:body+n])))
	}
	m = message{raw: raw, possDup: string(fixorder.Value(raw, "\x0143=")) == "Y"}
	if v := fixorder.Value(raw, "\x0135="); len(v) == 1 {
		m.kind = v[0]
	}
	if m.seq, err = number(fixorder.Value(raw, "\x0134=")); err != nil || m.seq == 0 {
		return m, nil, fmt.Errorf("MsgSeqNum (34) of the gateway is %.20q; allowed: 1 or more", fixorder.Value(raw, "\x0134="))
	}
	return m, in[whole:], nil
}

// get returns the value of a tag, given as SOH, tag and equals sign; nil if there is none.
func (m *message) get(tag string) []byte { return fixorder.Value(m.raw, tag) }

func number(v []byte) (uint64, error) {
	if len(v) == 0 || len(v) > 18 {
		return 0, fmt.Errorf("%.20q is no number of 1 to 18 digits", v)
	}
	var n uint64
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%.20q is no number", v)
		}
		n = n*10 + uint64(c-'0')
	}
	return n, nil
}

func fmt3(n byte) string { return string([]byte{'0' + n/100, '0' + n/10%10, '0' + n%10}) }

const stampLayout = "20060102-15:04:05.000"

func appendStamp(dst []byte, t time.Time) []byte { return t.UTC().AppendFormat(dst, stampLayout) }

// appendMessage appends a message of the session layer. fields are those behind the header, each with its SOH; first is
// OrigSendingTime of one that is sent again, or nil.
func (x *Session) appendMessage(dst []byte, kind string, seq uint64, first []byte, fields string) []byte {
	b := x.body[:0]
	b = append(append(append(b, "35="...), kind...), soh)
	b = append(append(append(b, "49="...), x.name.Sender...), soh)
	b = append(append(append(b, "56="...), x.name.Target...), soh)
	b = append(strconv.AppendUint(append(b, "34="...), seq, 10), soh)
	if first != nil {
		b = append(b, "43=Y\x01"...)
	}
	b = append(appendStamp(append(b, "52="...), time.Now()), soh)
	if first != nil {
		b = append(append(append(b, "122="...), first...), soh)
	}
	b = append(b, fields...)
	x.body = b
	at := len(dst)
	dst = append(append(append(dst, "8="...), x.name.Version...), "\x019="...)
	dst = append(strconv.AppendInt(dst, int64(len(b)), 10), soh)
	dst = append(dst, b...)
	check := fmt3(order.CheckSum(dst[at:]))
	return append(append(append(dst, "10="...), check...), soh)
}
