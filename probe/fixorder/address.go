package fixorder

import (
	"bytes"
	"fmt"
	"strconv"
)

// Address is what a FIX session writes into the header of an order that goes through it.
type Address struct {
	Sender, Target string // SenderCompID (49), TargetCompID (56)
	Seq            uint64 // MsgSeqNum (34)
	Sending        []byte // SendingTime (52); nil: as it is
	First          []byte // OrigSendingTime (122) of an order that is sent again, with PossDupFlag (43)
}

// fields of the header that a session writes, in the order of all templates, after MsgType.
var headerTags = [...]string{"49=", "56=", "34=", "52="}

// Readdress appends an order of this package with the header of a session. An order that is not of this package is
// refused.
func Readdress(dst, fix []byte, a *Address) ([]byte, error) {
	begin := bytes.Index(fix, []byte("\x0135=")) + 1
	if begin == 0 || len(fix) < begin+trailer {
		return dst, fmt.Errorf("%.40q is no order: it has no MsgType", fix)
	}
	head, at, sending := bytes.IndexByte(fix, soh)+1, begin, []byte(nil)
	kind := fix[begin : begin+bytes.IndexByte(fix[begin:], soh)+1]
	at += len(kind)
	for _, tag := range headerTags {
		if !bytes.HasPrefix(fix[at:], []byte(tag)) {
			return dst, fmt.Errorf("%.40q is no order of order-probe: its header has no tag %s behind MsgType", fix, tag[:2])
		}
		n := bytes.IndexByte(fix[at:], soh) + 1
		sending = fix[at+len(tag) : at+n-1]
		at += n
	}
	if a.Sending != nil {
		sending = a.Sending
	}
	rest := fix[at : len(fix)-trailer]
	size := len(kind) + len("49=|56=|34=|52=|") + len(a.Sender) + len(a.Target) + seqNumSize + len(sending) + len(rest)
	if a.First != nil {
		size += len("43=Y|122=|") + len(a.First)
	}
	start := len(dst)
	dst = append(append(dst, fix[:head]...), "9="...)
	dst = append(strconv.AppendInt(dst, int64(size), 10), soh)
	dst = append(dst, kind...)
	dst = append(append(append(dst, "49="...), a.Sender...), "\x0156="...)
	dst = append(append(dst, a.Target...), "\x0134=000000000"...)
	putDigits(dst[len(dst)-seqNumSize:], a.Seq)
	if a.First != nil {
		dst = append(dst, "\x0143=Y"...)
	}
	dst = append(append(append(dst, "\x0152="...), sending...), soh)
	if a.First != nil {
		dst = append(append(append(dst, "122="...), a.First...), soh)
	}
	dst = append(dst, rest...)
	sum := sumBytes(dst[start:])
	dst = append(dst, "10=000\x01"...)
	putDigits(dst[len(dst)-4:len(dst)-1], uint64(sum%256))
	return dst, nil
}

// addressTags are those that Readdress writes and Make does not, or with another value.
var addressTags = []uint32{49, 56, 43, 122}

// Unaddressed returns an order that came through a session as Make writes it, but for MsgSeqNum and SendingTime, which
// no check compares. r is the order's record, "" for an order that has none.
func Unaddressed(fix []byte, r Record) []byte {
	own := "\x0149=ORDERPROBE01\x0156=ORDERGRID\x01"
	if r != "" {
		own = "\x0149=A\x0156=B\x01"
	}
	return unset(fix, []byte(own), addressTags)
}

// SentBy reports whether the header of an order has the CompIDs.
func SentBy(fix []byte, sender, target string) bool {
	return bytes.Equal(Value(fix, "\x0149="), []byte(sender)) && bytes.Equal(Value(fix, "\x0156="), []byte(target))
}

// Value is the first value of a tag, given as SOH, tag and equals sign, so that of the header where it has the tag; nil if
// there is none.
func Value(fix []byte, tag string) []byte {
	at := bytes.Index(fix, []byte(tag))
	if at < 0 {
		return nil
	}
	v := fix[at+len(tag):]
	return v[:max(0, bytes.IndexByte(v, soh))]
}
