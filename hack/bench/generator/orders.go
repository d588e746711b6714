package generator

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// orders makes the orders of one client at a few nanoseconds each: of a valid
// message only the digits of the ClOrdID and the checksum change, by one digit at
// a time. At millions of orders a second anything more would be measured.
type orders struct {
	msg       []byte
	digits    []byte // of the ClOrdID, part of msg
	sumDigits []byte // of the checksum, part of msg
	sum       uint32 // of all bytes that the checksum covers
	started   bool   // the first order is the template as it stands
	sides     *sides // nil: all buy at one price
}

const indexDigits = 9

// newOrders makes orders of size bytes. The ClOrdIDs are id's from index first on.
func newOrders(size int, id fixorder.ID, first int64) (*orders, error) {
	msg, err := template(size, id, first)
	if err != nil {
		return nil, err
	}
	end := keyOffset(msg) + fixorder.IDSize
	o := &orders{msg: msg, digits: msg[end-indexDigits : end], sumDigits: msg[len(msg)-4 : len(msg)-1]}
	for _, c := range msg[:len(msg)-7] {
		o.sum += uint32(c)
	}
	return o, nil
}

// newOrders makes the orders of a probe of the run.
func (r *run) newOrders(probe int) (*orders, error) {
	o, err := newOrders(r.Size, fixorder.ID{Run: r.id, Probe: probe}, 0)
	if err == nil && r.Shape.TwoSided {
		o.sides, err = newSides(o.msg)
	}
	return o, err
}

// keyOffset is where the value of ClOrdID (11) begins; 0 if there is none.
func keyOffset(msg []byte) int { return bytes.Index(msg, []byte("\x0111=")) + len("\x0111=") }

// next returns the next order, valid until the call after it.
func (o *orders) next() []byte {
	if o.started {
		i := len(o.digits) - 1
		for o.digits[i] == '9' {
			o.digits[i] = '0'
			o.sum -= 9
			i--
		}
		o.digits[i]++
		o.sum++
	}
	o.started = true
	if o.sides != nil {
		o.sum += o.sides.next()
	}
	s := o.sum % 256
	o.sumDigits[0], o.sumDigits[1], o.sumDigits[2] = byte('0'+s/100), byte('0'+s/10%10), byte('0'+s%10)
	return o.msg
}

// Sizes of orders there are templates of.
const (
	MinOrder = 160
	MaxOrder = 9000
)

// template is order number index: the published one where the size is its, else
// the least that FIX 4.4 requires and a Text (58) of what is missing.
func template(size int, id fixorder.ID, index int64) ([]byte, error) {
	now := time.Now()
	if size < MinOrder || size > MaxOrder {
		return nil, fmt.Errorf("size: value %d, allowed: %d..%d bytes", size, MinOrder, MaxOrder)
	}
	if size == fixorder.Size {
		m, err := fixorder.NewMaker(fixorder.FIX42, id)
		if err != nil {
			return nil, err
		}
		return bytes.Clone(m.Make(index, 1, now, now)), nil
	}
	stamp := now.UTC().Format("20060102-15:04:05")
	body := fmt.Appendf(nil, "35=D\x0149=P\x0156=G\x0134=1\x0152=%s\x0111=%s\x0155=A\x0154=1\x0160=%s\x0138=1\x0140=1\x01", stamp, id.ClOrdID(index), stamp)
	for _, digits := range []int{3, 4} { // of BodyLength, which is part of what it depends on
		pad := size - len(body) - len("8=FIX.4.4\x019=\x0110=000\x01") - digits
		if pad < len("58=x\x01") || len(strconv.Itoa(len(body)+pad)) != digits {
			continue
		}
		body = append(body, padding(pad)...)
		return fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body), nil
	}
	return nil, fmt.Errorf("size: value %d, allowed: %d..%d bytes", size, MinOrder, MaxOrder)
}

// padding is n bytes of fields: Text (58) up to what that may hold, else
// EncodedText (355), which needs its length (354) ahead of it.
func padding(n int) []byte {
	if n <= 1000 {
		return fmt.Appendf(nil, "58=%s\x01", bytes.Repeat([]byte("x"), n-len("58=\x01")))
	}
	length := n - len("354=0000\x01355=\x01")
	if length < 1000 { // its length has a digit less
		length++
	}
	return fmt.Appendf(nil, "354=%d\x01355=%s\x01", length, bytes.Repeat([]byte("x"), length))
}

// keys draws ClOrdIDs of the first held orders of id at random.
func keys(id fixorder.ID, held int64, client int) func() []byte {
	key := []byte(id.ClOrdID(0))
	digits := key[fixorder.IDSize-indexDigits:]
	rnd := rand.New(rand.NewPCG(1, uint64(client)))
	return func() []byte {
		n := rnd.Int64N(held)
		for i := len(digits) - 1; i >= 0; i-- {
			digits[i] = byte('0' + n%10)
			n /= 10
		}
		return key
	}
}
