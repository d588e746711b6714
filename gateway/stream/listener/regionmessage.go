package listener

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// RegionFields are what filters on changes of regions can be about.
var RegionFields = []topics.Field{{Name: "region", Type: topics.Text}, {Name: "key", Type: topics.Text}, {Name: "kind", Type: topics.Text}, {Name: "received", Type: topics.Time}}

const (
	// longKey bytes of a key that is too long for one token are in its topic, and longSum bytes of its SHA-256.
	longKey = topics.MaxToken / 4
	longSum = 16
	// fieldKey bytes of a key are looked at by filters: with one more than their values may have, a longer key is equal to
	// none.
	fieldKey = topics.MaxValue + 1
)

// The topic of a long key fits: each byte of it is a token's three at most.
const _ = uint(topics.MaxToken-3*longKey) + uint(topics.MaxPattern-len(Regions)-order.MaxRegionName-2*topics.MaxToken-3)

// appendRegionTopic appends the topic of a change: region.{name}.{key}; of a key that is too long for a token
// region.{name}.{its begin}.{hash}, and of a change of all keys region.{name}.%, which no key has.
func appendRegionTopic(dst []byte, name string, key []byte) []byte {
	dst = append(append(append(append(dst, Regions...), '.'), name...), '.')
	if len(key) <= topics.MaxToken {
		at := len(dst)
		if dst = topics.AppendToken(dst, key); len(dst)-at <= topics.MaxToken {
			return dst
		}
		dst = dst[:at]
	}
	sum := sha256.Sum256(key)
	dst = append(topics.AppendToken(dst, key[:longKey]), '.')
	return hex.AppendEncode(dst, sum[:longSum])
}

// mostOfPair is how many bytes of a key and value a message has, so that it fits a ring of so many bytes: payload and two
// frames take a sixteenth of it at most, and text is twice as long as the key at most.
func mostOfPair(ring int) int { return max(0, ring/96-600) }

// region makes messages of the changes of an entry of a region, one of each key. Nothing is published of what changes none,
// and of regions that are not streamed.
func (b *batch) region(e *client.LogEntry, partition int) {
	o := order.RegionOf(order.Payload(e.Bytes))
	if o.Op < order.RegionPut || o.Op == order.RegionKeep {
		return
	}
	name := b.names.of(o.Region)
	if !b.streams(name) {
		return
	}
	at := fanout.Position{Seq: e.Seq}
	o.Each(func(one *order.RegionOp) {
		b.regionChange(e, one, name, partition, at)
		at.Index++
	})
}

// regionChange makes the message of a change.
func (b *batch) regionChange(e *client.LogEntry, o *order.RegionOp, name string, partition int, place fanout.Position) {
	at := len(b.arena)
	b.arena = appendRegionTopic(b.arena, name, o.Key)
	topic := b.arena[at:len(b.arena):len(b.arena)]

	at = len(b.arena)
	b.arena = append(b.arena, `{"received":"`...)
	b.arena = time.Unix(0, e.TimeNs).UTC().AppendFormat(b.arena, time.RFC3339Nano)
	b.arena = append(append(b.arena, `","kind":"`...), o.Op.String()...)
	b.arena = append(append(append(b.arena, `","region":"`...), name...), '"')
	b.pair(o)
	if o.ExpireNs != 0 {
		b.arena = append(b.arena, `,"expires":"`...)
		b.arena = append(time.Unix(0, o.ExpireNs).UTC().AppendFormat(b.arena, time.RFC3339Nano), '"')
	}
	b.arena = append(strconv.AppendUint(append(b.arena, `,"epoch":`...), uint64(e.Epoch), 10), '}')
	payload := b.arena[at:len(b.arena):len(b.arena)]

	first := len(b.fields)
	b.fields = append(b.fields, b.text([]byte(name)), b.text(o.Key[:min(len(o.Key), fieldKey)]), b.text([]byte(o.Op.String())), topics.IntValue(e.TimeNs))
	b.messages = append(b.messages, fanout.Message{Partition: partition, At: place, Topic: topic,
		Fields: b.fields[first:len(b.fields):len(b.fields)], Payload: payload, Partial: o.Op == order.RegionPatch || o.Op == order.RegionClear})
	b.received = append(b.received, e.TimeNs)
}

// pair appends key and value to the payload, where they are not too long for the ring.
func (b *batch) pair(o *order.RegionOp) {
	if n := len(o.Key) + len(o.Value); n > b.mostOfPair {
		b.arena = strconv.AppendInt(append(b.arena, `,"omitted":`...), int64(n), 10)
		return
	}
	switch {
	case len(o.Key) == 0:
	case isText(o.Key):
		b.arena = append(appendText(append(b.arena, `,"key":"`...), o.Key), '"')
	default:
		b.base64("keyBase64", o.Key)
	}
	switch o.Op {
	case order.RegionPatch: // a part of a value is no JSON
		b.arena = strconv.AppendUint(append(b.arena, `,"offset":`...), uint64(o.Offset), 10)
		b.base64("base64", o.Value)
	case order.RegionPut:
		if !isJSON(o.Value) {
			b.base64("base64", o.Value)
			return
		}
		b.arena = append(append(b.arena, `,"value":`...), o.Value...)
	}
}

// isJSON reports whether a value is sent as it stands. What a reader of JSON or of Server-Sent Events would change of it (line
// breaks, spaces around it) is sent as bytes: patches are of its bytes.
func isJSON(v []byte) bool {
	return len(v) > 0 && v[0] > ' ' && v[len(v)-1] > ' ' && !bytes.ContainsAny(v, "\r\n") && utf8.Valid(v) && json.Valid(v)
}

func (b *batch) base64(name string, v []byte) {
	b.arena = append(append(append(b.arena, `,"`...), name...), `":"`...)
	b.arena = append(base64.StdEncoding.AppendEncode(b.arena, v), '"')
}

// isText reports whether bytes are written as text.
func isText(v []byte) bool {
	return utf8.Valid(v) && !bytes.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// appendText appends what is between the quotes of a string of JSON; it takes twice as many bytes at most.
func appendText(dst, v []byte) []byte {
	for _, c := range v {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

// orders returns how many messages are of orders.
func (b *batch) orders() (n int) {
	for i := range b.messages {
		if isOfOrder(b.messages[i].Topic) {
			n++
		}
	}
	return n
}

// isOfOrder reports whether a topic is one of orders, or of what they did: neither of a region nor of a sink.
func isOfOrder(topic []byte) bool {
	first, _, _ := bytes.Cut(topic, []byte("."))
	return string(first) != Regions && string(first) != Downstream
}
