// Package fixorder makes the 305-byte FIX NewOrderSingle of the published tests. The message is a
// template patched in place: the fields that vary have a fixed width, so every order has the same
// length and making one allocates nothing.
package fixorder

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Size is the length of every published order, in bytes.
const Size = 305

// Version names a template.
type Version string

// The FIX versions there are templates of.
const (
	FIX42 Version = "4.2"
	FIX44 Version = "4.4"
	FIX50 Version = "5.0SP2" // over FIXT 1.1
)

// Versions are all of them.
func Versions() []Version { return []Version{FIX42, FIX44, FIX50} }

// Check refuses a version that there is no template of.
func (v Version) Check() error {
	if !slices.Contains(Versions(), v) {
		return fmt.Errorf("FIX version %.20q: there are %s, %s and %s", string(v), FIX42, FIX44, FIX50)
	}
	return nil
}

// BeginString is the value of tag 8.
func (v Version) BeginString() string {
	if v == FIX50 {
		return "FIXT.1.1"
	}
	return "FIX." + string(v)
}

const soh = 0x01

var (
	//go:embed order-305-fix42.txt
	template42 []byte
	//go:embed order-305-fix44.txt
	template44 []byte
	//go:embed order-305-fix50.txt
	template50 []byte
)

// field is a fixed-width value inside the template.
type field struct {
	tag  string
	off  int
	size int
}

// Maker makes the orders of one publishing thread. It is not safe for use by
// several goroutines.
type Maker struct {
	buf                                []byte
	seqNum, sending, transact, clOrdID field
	static                             uint32 // sum of all bytes that no patch touches
	sendingClock, transactClock        stamp
	dynamic                            [4]field
	checkSumOff                        int
	id                                 ID
}

// MaxSeqNum is the largest MsgSeqNum (34) that fits the template.
const MaxSeqNum = 999_999_999

// NewMaker returns a maker of the published order, in the given version, for one
// probe.
func NewMaker(v Version, id ID) (*Maker, error) { return NewRecordMaker(v, "", id) }

// NewRecordMaker returns a maker of orders with the content of the record.
func NewRecordMaker(v Version, r Record, id ID) (*Maker, error) {
	m := &Maker{id: id}
	if err := errors.Join(id.check(), v.Check()); err != nil {
		return nil, err
	}
	m.buf = bytes.Clone(map[Version][]byte{FIX42: template42, FIX44: template44, FIX50: template50}[v])
	if r != "" {
		var err error
		if m.buf, err = recordTemplate(v, r); err != nil {
			return nil, err
		}
	}
	if err := m.locate(); err != nil {
		return nil, fmt.Errorf("template of FIX %s %s: %w", v, r, err)
	}
	return m, nil
}

func (m *Maker) locate() error {
	find := func(tag string, size int) (field, error) {
		i := bytes.Index(m.buf, []byte("\x01"+tag+"="))
		if i < 0 {
			return field{}, fmt.Errorf("has no tag %s", tag)
		}
		off := i + len(tag) + 2
		end := bytes.IndexByte(m.buf[off:], soh)
		if end != size {
			return field{}, fmt.Errorf("tag %s is %d bytes, want %d", tag, end, size)
		}
		return field{tag: tag, off: off, size: size}, nil
	}
	var errs [5]error
	var sum field
	m.seqNum, errs[0] = find("34", 9)
	m.sending, errs[1] = find("52", stampSize)
	m.transact, errs[2] = find("60", stampSize)
	m.clOrdID, errs[3] = find("11", IDSize)
	sum, errs[4] = find("10", 3)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	m.checkSumOff = sum.off
	m.dynamic = [4]field{m.seqNum, m.sending, m.transact, m.clOrdID}
	m.static = sumBytes(m.buf[:sum.off-len("10=")])
	for _, f := range m.dynamic {
		m.static -= sumBytes(m.buf[f.off : f.off+f.size])
	}
	return nil
}

// Make patches order number index into the maker's buffer and returns it; the
// slice is valid until the next call. created becomes TransactTime (60), sent
// SendingTime (52), seqNum MsgSeqNum (34), and ClOrdID (11) follows from the
// identity and index alone.
func (m *Maker) Make(index, seqNum int64, created, sent time.Time) []byte {
	putDigits(m.buf[m.seqNum.off:m.seqNum.off+m.seqNum.size], uint64(seqNum))
	m.sendingClock.put(m.buf[m.sending.off:], sent)
	m.transactClock.put(m.buf[m.transact.off:], created)
	m.id.put(m.buf[m.clOrdID.off:m.clOrdID.off+IDSize], index)
	m.seal()
	return m.buf
}

// seal writes the CheckSum (10).
func (m *Maker) seal() {
	sum := m.static
	for i := range m.dynamic {
		f := &m.dynamic[i]
		sum += sumBytes(m.buf[f.off : f.off+f.size])
	}
	putDigits(m.buf[m.checkSumOff:m.checkSumOff+3], uint64(sum%256))
}

func sumBytes(b []byte) (sum uint32) {
	for _, c := range b {
		sum += uint32(c)
	}
	return sum
}

// putDigits fills b with the last len(b) decimal digits of n.
func putDigits(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// stampSize is the length of a FIX UTCTimestamp with milliseconds.
const stampSize = len("20060102-15:04:05.000")

// stamp writes UTC timestamps, computing the date only once a second.
type stamp struct {
	second int64
	text   [stampSize]byte
}

func (s *stamp) put(b []byte, t time.Time) {
	if sec := t.Unix(); sec != s.second || s.text[0] == 0 {
		s.second = sec
		t.UTC().AppendFormat(s.text[:0], "20060102-15:04:05.000")
	}
	copy(b, s.text[:stampSize-3])
	putDigits(b[stampSize-3:stampSize], uint64(t.Nanosecond()/1_000_000))
}

// Check verifies that b is an order as Make writes it: its length, its
// BodyLength (9) and its CheckSum (10).
func Check(b []byte) error {
	if len(b) != Size {
		return fmt.Errorf("order is %d bytes, want %d", len(b), Size)
	}
	body := bytes.Index(b, []byte("\x019="))
	if body < 0 {
		return errors.New("order has no BodyLength (9)")
	}
	from := body + 3
	end := bytes.IndexByte(b[from:], soh)
	if end < 0 {
		return errors.New("BodyLength (9) does not end")
	}
	n, err := strconv.Atoi(string(b[from : from+end]))
	if err != nil || from+end+1+n != Size-len("10=000\x01") {
		return fmt.Errorf("BodyLength (9) is %q, the order has %d", b[from:from+end], Size-len("10=000\x01")-(from+end+1))
	}
	want := sumBytes(b[:Size-7]) % 256
	var digits [3]byte
	putDigits(digits[:], uint64(want))
	if got := b[Size-7:]; !bytes.Equal(got[:3], []byte("10=")) || !bytes.Equal(got[3:6], digits[:]) || got[6] != soh {
		return fmt.Errorf("CheckSum (10) is %q, want %q", got, digits[:])
	}
	return nil
}
