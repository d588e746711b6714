package function

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Amend appends to dst the message with the tags that a Pre function set: a tag that is
// there has its first value replaced, the others are added at the end. BodyLength and
// CheckSum are made again. The result has to go through order.Parse before it is an entry:
// a function may set a value that the tag does not allow.
//
// It returns an error, and no message, for a tag that a message needs to be itself, and
// for a message that becomes too long.
func Amend(dst, raw []byte, sets []Set) ([]byte, error) {
	for _, s := range sets {
		if fixedTag(s.Tag) {
			return nil, fmt.Errorf("tag %d cannot be set: it is of the envelope, the session or the order's identity", s.Tag)
		}
	}
	const begin, trailer = len("8=FIX.4.4\x01"), len("10=000\x01")
	body := begin + bytes.IndexByte(raw[min(begin, len(raw)):], order.SOH) + 1 // after BodyLength
	if body <= begin || body > len(raw)-trailer {
		return nil, errors.New("message without a body")
	}
	var out []byte
	at := body
	for _, p := range placed(raw, sets) {
		if p.span.Len == 0 {
			continue
		}
		out = append(append(out, raw[at:p.span.Off]...), p.set.Value...)
		at = int(p.span.Off) + int(p.span.Len)
	}
	out = append(out, raw[at:len(raw)-trailer]...)
	for _, p := range placed(raw, sets) {
		if p.span.Len == 0 {
			out = append(strconv.AppendUint(out, uint64(p.set.Tag), 10), '=')
			out = append(append(out, p.set.Value...), order.SOH)
		}
	}
	start := len(dst)
	dst = append(append(dst, raw[:begin]...), "9="...)
	dst = append(strconv.AppendInt(dst, int64(len(out)), 10), order.SOH)
	dst = append(dst, out...)
	if n := len(dst) - start + trailer; n > order.MaxPayload {
		return nil, fmt.Errorf("message of %d bytes, at most %d are allowed", n, order.MaxPayload)
	}
	return fmt.Appendf(dst, "10=%03d\x01", order.CheckSum(dst[start:])), nil
}

// place is where the value of a set is in a message.
type place struct {
	set  Set
	span order.Span
}

// placed returns the sets in the order of their places. Sets of tags that are not there are
// first, in their own order.
func placed(raw []byte, sets []Set) []place {
	tags := make([]uint32, len(sets))
	for k, s := range sets {
		tags[k] = s.Tag
	}
	list := make([]place, len(sets))
	for k, span := range order.NewLocator(tags...).Locate(raw, 0) {
		list[k] = place{sets[k], span}
	}
	slices.SortStableFunc(list, func(a, b place) int { return int(a.span.Off) - int(b.span.Off) })
	return list
}

// fixedTag reports whether a tag is of the envelope, the session or what an order is known by.
func fixedTag(tag uint32) bool {
	switch tag {
	case 0, 8, 9, 10, 11, 34, 35, 41, 43, 49, 52, 56, 97, 122:
		return true
	}
	return false
}
