package fixorder

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/probe/flow"
)

// Varied makes the messages of a flow: new orders, cancels and replaces of any symbol, quantity and
// price. Everything but MsgSeqNum and the two times follows from the identity, the index and the
// flow, so that the bytes can be regenerated to be checked. It is not safe for use by several
// goroutines.
type Varied struct {
	id      ID
	first   int64
	content *flow.Messages
	head    []byte // up to BodyLength
	hasHandlInst,
	hasParty bool

	buf                   [MaxSize]byte
	scratch               [MaxSize]byte // body; for Check
	sendingClock, txClock stamp
	message               flow.Message
}

// MaxSize bounds the length of a varied order, in bytes.
const MaxSize = 384

// NewVaried returns a maker of messages of the given version for one probe.
func NewVaried(v Version, id ID) (*Varied, error) {
	if err := errors.Join(id.check(), v.Check()); err != nil {
		return nil, err
	}
	return &Varied{id: id, head: []byte("8=" + v.BeginString() + "\x019="), hasHandlInst: v == FIX42, hasParty: v != FIX42}, nil
}

// Use selects the messages of a step, whose first has the given index within the run.
func (m *Varied) Use(first int64, content *flow.Messages) { m.first, m.content = first, content }

// The fields that differ each time an order is sent are at fixed places of the body, right after
// the MsgType.
const (
	bodyType     = len("35=")
	bodySeqNum   = bodyType + len("D\x0149=ORDERPROBE01\x0156=ORDERGRID\x0134=")
	seqNumSize   = 9
	bodySending  = bodySeqNum + seqNumSize + len("\x0152=")
	bodyTransact = bodySending + stampSize + len("\x0160=")
	bodyClOrdID  = bodyTransact + stampSize + len("\x0111=")
	fixedBody    = "35=D\x0149=ORDERPROBE01\x0156=ORDERGRID\x0134=000000001\x0152=20071115-14:30:00.123\x0160=20071115-14:30:00.123\x0111=PRA20071115T00000001\x01"
)

// Make writes message number index into the maker's buffer and returns it; the
// slice is valid until the next call. The arguments are those of Maker.Make.
func (m *Varied) Make(index, seqNum int64, created, sent time.Time) []byte {
	return m.finish(m.fields(m.begin(index, seqNum, created, sent), index))
}

// begin makes what all messages begin with.
func (m *Varied) begin(index, seqNum int64, created, sent time.Time) []byte {
	b := append(m.scratch[:0], fixedBody...)
	putDigits(b[bodySeqNum:bodySeqNum+seqNumSize], uint64(seqNum))
	m.sendingClock.put(b[bodySending:], sent)
	m.txClock.put(b[bodyTransact:], created)
	m.id.put(b[bodyClOrdID:bodyClOrdID+IDSize], index)
	return b
}

// fields appends the flow's fields of the message.
func (m *Varied) fields(b []byte, index int64) []byte {
	o := &m.message
	m.content.Message(index-m.first, o)
	b[bodyType] = byte(o.Kind)
	if o.Kind != flow.NewOrder {
		b = append(b, "41="...)
		b = b[:len(b)+IDSize]
		m.id.put(b[len(b)-IDSize:], m.first+o.Target)
		b = append(b, 1)
	}
	b = append(b, "1=ACCT-00012345\x01"...)
	if m.hasHandlInst && o.Kind != flow.Cancel {
		b = append(b, "21=1\x01"...)
	}
	b = append(append(append(b, "55="...), o.Symbol...), "\x0154="...)
	b = append(b, o.Side)
	b = strconv.AppendUint(append(b, "\x0138="...), uint64(o.Qty), 10)
	b = append(b, 1)
	if o.Kind != flow.Cancel {
		b = append(append(append(b, "40="...), o.Type), 1)
		if o.Type != '1' {
			b = appendPrice(append(b, "44="...), o.Price)
		}
		if o.Type == '4' {
			b = appendPrice(append(b, "99="...), o.Stop)
		}
		b = append(append(append(b, "59="...), o.Time), "\x0115=USD\x01"...)
		if m.hasParty {
			b = append(b, "453=1\x01448=CLIENT-0042\x01447=D\x01452=3\x01"...)
		} else {
			b = append(b, "109=CLIENT-0042\x0176=BRKR01\x01"...)
		}
	}
	return append(b, "58=order-probe\x01"...)
}

// appendPrice appends units of 1/10,000 as a decimal, and SOH.
func appendPrice(b []byte, price uint32) []byte {
	b = strconv.AppendUint(b, uint64(price/10_000), 10)
	b = append(b, ".0000\x01"...)
	putDigits(b[len(b)-5:len(b)-1], uint64(price%10_000))
	return b
}

// finish puts the envelope around a body.
func (m *Varied) finish(body []byte) []byte {
	b := append(m.buf[:0], m.head...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(append(b, 1), body...)
	sum := sumBytes(b)
	b = append(b, "10=000\x01"...)
	putDigits(b[len(b)-4:len(b)-1], uint64(sum%256))
	return b
}

// Check verifies that fix is message number index, byte by byte except the MsgSeqNum and the times,
// which it takes from the message itself.
func (m *Varied) Check(index int64, fix []byte) error {
	i := index - m.first
	if m.content == nil || i < 0 || i >= m.content.Len() {
		return fmt.Errorf("the flow has no message %d", index)
	}
	return m.compare(index, fix, m.fields)
}

// compare is Check of a message whose own fields the function appends.
func (m *Varied) compare(index int64, fix []byte, fields func(b []byte, index int64) []byte) error {
	start := bytes.Index(fix, []byte("\x0135="))
	if start < 0 || len(fix) < start+1+len(fixedBody) {
		return fmt.Errorf("%d bytes are not an order", len(fix))
	}
	body := append(m.scratch[:0], fixedBody...)
	for _, f := range [...]struct{ off, size int }{{bodySeqNum, seqNumSize}, {bodySending, stampSize}, {bodyTransact, stampSize}} {
		v := fix[start+1+f.off:][:f.size]
		if err := checkStamp(v); err != nil {
			return err
		}
		copy(body[f.off:], v)
	}
	m.id.put(body[bodyClOrdID:bodyClOrdID+IDSize], index)
	return differ(fix, m.finish(fields(body, index)))
}

func cut(b []byte) []byte { return b[:min(len(b), 40)] }
