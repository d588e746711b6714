package order

import "bytes"

// SOH separates FIX fields.
const SOH = 0x01

// Limits of single values, in bytes.
const (
	MaxClOrdID = 64
	MaxSymbol  = 64
	MaxAccount = 64
	MaxValue   = 1024 // any other value; data fields are bounded by the message alone
	maxCustom  = 64   // distinct tags of 1024 and more in one message
)

// Version is the FIX version of a message.
type Version uint8

// Supported versions.
const (
	FIX42 Version = 42
	FIX44 Version = 44
	FIX50 Version = 50 // FIX 5.0 SP2, over FIXT 1.1
)

// Order is the result of parsing a message. Offsets count from its first byte.
type Order struct {
	Fields
	Version     Version
	MsgType     byte   // 'D', 'F' or 'G'
	OrdType     byte   // 0 in a cancel
	TimeInForce byte   // '0' (Day) when the message has none
	CheckSumOff uint16 // of the three digits
}

const (
	begin42 = "8=FIX.4.2\x019="
	begin44 = "8=FIX.4.4\x019="
	begin50 = "8=FIXT.1.1\x019=" // one byte longer
	trailer = 7                  // 10=ddd and SOH
)

// minMessage is shorter than any order; with it the envelope is read without further
// checks.
const minMessage = len(begin42) + len("1\x0135=D\x01") + trailer

// Parse reads a NewOrderSingle (35=D), OrderCancelRequest (F) or OrderCancelReplaceRequest
// (G) of FIX 4.2, 4.4 or 5.0 SP2 in place: it copies nothing and allocates only for an
// error. A message over FIXT 1.1 is of FIX 5.0 SP2, with ApplVerID (1128) 9 or without.
// o is only valid when the error is nil. The subject of a cancel or replace (OrigClOrdID)
// is not looked up: each message has its own ClOrdID and its own entry in the log.
//
// Checked are the envelope (BeginString, BodyLength, MsgType first; CheckSum last; both
// correct), every field's syntax and characters, repeated tags, repeating group counts,
// length-prefixed data fields, and the required fields. Unknown tags pass through unread:
// the payload is stored verbatim.
func Parse(msg []byte, o *Order) *Error {
	_, _, err := parse(msg, o)
	return err
}

// parse is Parse. It returns where the fields after MsgType and where CheckSum begin.
func parse(msg []byte, o *Order) (body, end int, err *Error) {
	body, end, err = envelope(msg, o)
	if err != nil {
		return 0, 0, err
	}
	p := parser{msg: msg, order: o}
	if o.Version == FIX50 {
		var x later
		p.later = &x
	}
	p.seen.set(8)
	p.seen.set(9)
	p.seen.set(35)
	for i := body; i < end; {
		if i, err = p.field(i, end); err != nil {
			return 0, 0, err
		}
	}
	return body, end, p.finish()
}

// envelope checks the frame of the message and returns where the fields after MsgType and
// where CheckSum begin.
func envelope(m []byte, o *Order) (body, end int, err *Error) {
	if len(m) > MaxPayload {
		return 0, 0, &Error{Reason: ReasonTooLong, Value: number(len(m)), Allowed: "at most 65472 bytes"}
	}
	if len(m) < minMessage {
		return 0, 0, &Error{Reason: ReasonTruncated, Value: quote(m), Allowed: "8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1, 9=, 35=, …, 10="}
	}
	*o = Order{TimeInForce: '0'}
	from := len(begin42)
	switch string(m[:len(begin42)]) {
	case begin42:
		o.Version = FIX42
	case begin44:
		o.Version = FIX44
	default:
		if string(m[:len(begin50)]) != begin50 {
			return 0, 0, &Error{Tag: 8, Reason: ReasonBeginString, Value: quote(upTo(m, len("8=FIXT.1.1")+1)), Allowed: "8=FIX.4.2, 8=FIX.4.4 or 8=FIXT.1.1, followed by 9="}
		}
		o.Version, from = FIX50, len(begin50)
	}
	length, i := 0, from
	for ; i < from+5 && m[i]-'0' <= 9; i++ {
		length = length*10 + int(m[i]-'0')
	}
	if m[i] != SOH || i == from {
		return 0, 0, &Error{Tag: 9, Reason: ReasonBodyLength, Value: quote(upTo(m[from:], 12)), Allowed: "1 to 5 digits"}
	}
	start := i + 1
	end = len(m) - trailer
	if string(m[end:end+3]) != "10=" || m[end-1] != SOH || m[len(m)-1] != SOH {
		return 0, 0, &Error{Tag: 10, Reason: ReasonTruncated, Value: quote(m[end:]), Allowed: "10= and three digits as the last field"}
	}
	if length != end-start {
		return 0, 0, &Error{Tag: 9, Reason: ReasonBodyLength, Value: number(length), Allowed: number(end-start) + ", the bytes between 9= and 10="}
	}
	if err := checkSum(m, end); err != nil {
		return 0, 0, err
	}
	if string(m[start:start+3]) != "35=" {
		return 0, 0, &Error{Tag: 35, Reason: ReasonOutOfPlace, Value: quote(upTo(m[start:end], 8)), Allowed: "35= as the third field"}
	}
	o.MsgType = m[start+3]
	if o.MsgType != 'D' && o.MsgType != 'F' && o.MsgType != 'G' || m[start+4] != SOH {
		return 0, 0, &Error{Tag: 35, Reason: ReasonMsgType, Value: quote(upTo(m[start+3:end], 8)), Allowed: "D (NewOrderSingle), F (OrderCancelRequest), G (OrderCancelReplaceRequest)"}
	}
	o.CheckSumOff = uint16(end + 3)
	return start + 5, end, nil
}

func checkSum(m []byte, end int) *Error {
	a, b, c := m[end+3]-'0', m[end+4]-'0', m[end+5]-'0'
	if a > 9 || b > 9 || c > 9 {
		return &Error{Tag: 10, Reason: ReasonCheckSum, Value: quote(m[end+3 : end+6]), Allowed: "three digits"}
	}
	if want := CheckSum(m[:end]); int(a)*100+int(b)*10+int(c) != int(want) {
		return &Error{Tag: 10, Reason: ReasonCheckSum, Value: quote(m[end+3 : end+6]), Allowed: string(digits3(want))}
	}
	return nil
}

// CheckSum is the sum of all bytes modulo 256: of a message up to and including
// the SOH before "10=".
func CheckSum(b []byte) uint8 {
	const low = 0x00ff00ff00ff00ff
	var sum uint64
	for len(b) >= 32 {
		// Eight sums of 16 bits, in two independent words; 32 rounds of 4*255 fit.
		var even, odd uint64
		n := min(len(b)/32, 32)
		for range n {
			w, x, y, z := le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
			even += w&low + x&low + y&low + z&low
			odd += w>>8&low + x>>8&low + y>>8&low + z>>8&low
			b = b[32:]
		}
		sum += lanes(even) + lanes(odd)
	}
	for _, c := range b {
		sum += uint64(c)
	}
	return uint8(sum)
}

func lanes(x uint64) uint64 { return x&0xffff + x>>16&0xffff + x>>32&0xffff + x>>48 }

func digits3(v uint8) []byte { return []byte{'0' + v/100, '0' + v/10%10, '0' + v%10} }

// Seal writes the correct CheckSum into a message that ends with "10=ddd" and SOH. It
// reports whether the message does.
func Seal(msg []byte) bool {
	end := len(msg) - trailer
	if end < 0 || string(msg[end:end+3]) != "10=" || msg[len(msg)-1] != SOH {
		return false
	}
	v := CheckSum(msg[:end])
	msg[end+3], msg[end+4], msg[end+5] = '0'+v/100, '0'+v/10%10, '0'+v%10
	return true
}

// BeginStringLen returns the size of the first field of a message that Parse accepts, with
// its SOH; 0 for bytes that cannot be one.
func BeginStringLen(msg []byte) int {
	const n = len("8=FIX.4.2\x01")
	switch {
	case len(msg) < minMessage:
		return 0
	case msg[n-1] == SOH:
		return n
	case msg[n] == SOH: // FIXT.1.1
		return n + 1
	}
	return 0
}

// Find returns the position of the value of the first field with this tag. It is for tools
// that patch a template; data fields that contain SOH may mislead it.
func Find(msg []byte, tag int) (off, length int, ok bool) {
	key := append([]byte(number(tag)), '=')
	for i := 0; i < len(msg); {
		n := bytes.IndexByte(msg[i:], SOH)
		if n < 0 {
			n = len(msg) - i
		}
		if bytes.HasPrefix(msg[i:i+n], key) {
			return i + len(key), n - len(key), true
		}
		i += n + 1
	}
	return 0, 0, false
}
