package function

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Amend is Amender.Amend for a single message.
func Amend(dst, raw []byte, sets []Set) ([]byte, error) {
	tags := make([]uint32, len(sets))
	for k, s := range sets {
		tags[k] = s.Tag
	}
	return NewAmender(tags...).Amend(dst, raw, 0, sets)
}

// Amender sets tags of messages. It keeps what it needs, so that it allocates nothing in
// the steady state. It is not safe for concurrent use.
type Amender struct {
	tags    []uint32
	locator *order.Locator
	body    []byte
	list    []place
}

// NewAmender returns an Amender for sets of these tags, at most 255.
func NewAmender(tags ...uint32) *Amender {
	return &Amender{tags: tags, locator: order.NewLocator(tags...)}
}

// Settable reports whether a function may be granted a tag. Tags of the envelope, the
// session and the order's identity are not, nor those that decide how others are read.
func Settable(tag uint32) bool { return !fixedTag(tag) && !order.IsStructure(tag) }

// Amend appends to dst the message with the tags that a Pre function set: a tag that is
// there has its first value replaced, the others are added at the end. BodyLength and
// CheckSum are made again. The result has to go through order.Parse before it is an entry:
// a function may set a value that the tag does not allow. places is Fields.Places, or 0.
//
// It returns an error, and no message, for a tag that is not Settable, and for a message
// that becomes too long.
func (a *Amender) Amend(dst, raw []byte, places uint64, sets []Set) ([]byte, error) {
	for _, s := range sets {
		if !Settable(s.Tag) {
			return nil, fmt.Errorf("tag %d cannot be set: it is of the envelope, the session or the order's identity, or decides how other tags are read", s.Tag)
		}
	}
	const trailer = len("10=000\x01")
	begin := order.BeginStringLen(raw)
	body := begin + bytes.IndexByte(raw[begin:], order.SOH) + 1 // after BodyLength
	if begin == 0 || body <= begin || body > len(raw)-trailer {
		return nil, errors.New("message without a body")
	}
	a.place(raw, places, sets)
	out, at := a.body[:0], body
	for _, p := range a.list {
		if p.span.Len > 0 {
			out = append(append(out, raw[at:p.span.Off]...), p.set.Value...)
			at = int(p.span.Off) + int(p.span.Len)
		}
	}
	out = append(out, raw[at:len(raw)-trailer]...)
	for _, p := range a.list {
		if p.span.Len == 0 {
			out = append(strconv.AppendUint(out, uint64(p.set.Tag), 10), '=')
			out = append(append(out, p.set.Value...), order.SOH)
		}
	}
	a.body = out
	start := len(dst)
	dst = append(append(dst, raw[:begin]...), "9="...)
	dst = append(strconv.AppendInt(dst, int64(len(out)), 10), order.SOH)
	dst = append(dst, out...)
	if n := len(dst) - start + trailer; n > order.MaxPayload {
		return nil, fmt.Errorf("message of %d bytes, at most %d are allowed", n, order.MaxPayload)
	}
	sum := order.CheckSum(dst[start:])
	return append(dst, '1', '0', '=', '0'+byte(sum/100), '0'+byte(sum/10%10), '0'+byte(sum%10), order.SOH), nil
}

// place is where the value of a set is in a message.
type place struct {
	set  Set
	span order.Span
}

// place lists the sets in the order of their places. Sets of tags that are not there are
// first, in their own order.
func (a *Amender) place(raw []byte, places uint64, sets []Set) {
	a.list = a.list[:0]
	spans := a.locator.Locate(raw, places)
	for _, s := range sets {
		p := place{set: s}
		if k := slices.Index(a.tags, s.Tag); k >= 0 {
			p.span = spans[k]
		}
		a.list = append(a.list, p)
	}
	slices.SortStableFunc(a.list, func(x, y place) int { return int(x.span.Off) - int(y.span.Off) })
}

// fixedTag reports whether a tag is of the envelope, the session or what an order is known by.
func fixedTag(tag uint32) bool {
	switch tag {
	case 0, 8, 9, 10, 11, 34, 35, 41, 43, 49, 52, 56, 97, 122:
		return true
	}
	return false
}
