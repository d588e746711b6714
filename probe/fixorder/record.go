package fixorder

import (
	"bytes"
	"fmt"
)

// Record is the content of a maker's orders.
type Record string

// Records. The zero value is the 305-byte order of the published tests.
const (
	// Empty has only the mandatory fields, in the shortest form that still lets every order be
	// found again: a ClOrdID of IDSize bytes, and numbers and times of a fixed width.
	Empty Record = "empty"
	// EightFields is Empty and eight fields more: four strings, two long and two
	// short numbers.
	EightFields Record = "8 fields"
)

// Records are those of the write benchmark, the smaller one first.
func Records() []Record { return []Record{Empty, EightFields} }

const (
	emptyBody = "35=D\x0149=A\x0156=B\x0134=000000000\x0152=20071115-14:30:00.123\x0111=PRA20071115T00000001\x01" +
		"55=A\x0154=1\x0160=20071115-14:30:00.123\x0138=1\x0140=1\x01"
	handlInst = "21=1\x01" // an order of FIX 4.2 needs it, later ones do not
	// Account, Currency, ExDestination, Text; MinQty, MaxFloor; CoveredOrUncovered
	// and, by version, CustomerOrFirm or CustOrderCapacity.
	eightFields = "1=ACCT-00012345\x0115=USD\x01100=XNYS\x0158=order-probe\x01110=1000000000\x01111=2000000000\x01203=1\x01"
)

// recordTemplate is a whole order of the record.
func recordTemplate(v Version, r Record) ([]byte, error) {
	body := []byte(emptyBody)
	if v == FIX42 {
		body = append(body, handlInst...)
	}
	switch r {
	case Empty:
	case EightFields:
		body = append(body, eightFields...)
		if v == FIX42 {
			body = append(body, "204=1\x01"...)
		} else {
			body = append(body, "582=1\x01"...)
		}
	default:
		return nil, fmt.Errorf("record %.40q: there are %q and %q", r, Empty, EightFields)
	}
	b := fmt.Appendf(nil, "8=%s\x019=%d\x01", v.BeginString(), len(body))
	b = append(b, body...)
	return fmt.Appendf(b, "10=%03d\x01", sumBytes(b)%256), nil
}

// RecordSize is the length of every order of a record, in bytes; 0 for an unknown version.
func RecordSize(v Version, r Record) int {
	if r == "" {
		return Size
	}
	b, err := recordTemplate(v, r)
	if err != nil || v.Check() != nil {
		return 0
	}
	return len(b)
}

// Check verifies that fix is order number index, byte by byte except the MsgSeqNum and the times,
// which it takes from the order itself. It writes into the buffer that Make returns.
func (m *Maker) Check(index int64, fix []byte) error {
	if len(fix) != len(m.buf) {
		return fmt.Errorf("order is %d bytes, want %d", len(fix), len(m.buf))
	}
	for _, f := range [...]field{m.seqNum, m.sending, m.transact} {
		v := fix[f.off : f.off+f.size]
		if err := checkStamp(v); err != nil {
			return err
		}
		copy(m.buf[f.off:], v)
	}
	m.id.put(m.buf[m.clOrdID.off:m.clOrdID.off+IDSize], index)
	m.seal()
	return differ(fix, m.buf)
}

// checkStamp refuses characters of neither a number nor a time.
func checkStamp(v []byte) error {
	for _, c := range v {
		if (c < '0' || c > '9') && c != '-' && c != ':' && c != '.' {
			return fmt.Errorf("%q instead of a time or number", v)
		}
	}
	return nil
}

// differ reports where an order differs from the one that was sent; nil if it does not.
func differ(fix, want []byte) error {
	if bytes.Equal(fix, want) {
		return nil
	}
	at := 0
	for at < len(fix) && at < len(want) && fix[at] == want[at] {
		at++
	}
	return fmt.Errorf("differs from what was sent from byte %d on: %q, want %q", at, cut(fix[at:]), cut(want[at:]))
}
