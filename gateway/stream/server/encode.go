package server

import (
	"encoding/binary"
	"strconv"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
)

// Subprotocols. Commands and what is not a message are JSON in both.
const (
	JSON   = "ordergrid.json.v1"
	Binary = "ordergrid.bin.v1"
)

// encodings by index of fanout.Config.Encodings.
var encodings = []string{JSON, Binary}

// maxHeader is the longest header of a frame of a server.
const maxHeader = 10

// begin leaves room for the header of a frame.
func begin(dst []byte) []byte { return append(dst, make([]byte, maxHeader)...) }

// finish writes the header of the frame that begins at start, and closes the room that it did not need. moved is by how
// much what is behind the header moved.
func finish(dst []byte, start int, op ws.Opcode) (frame []byte, moved int) {
	var h [maxHeader]byte
	n := len(ws.AppendHeader(h[:0], op, len(dst)-start-maxHeader))
	moved = maxHeader - n
	copy(dst[start:], h[:n])
	copy(dst[start+n:], dst[start+maxHeader:])
	return dst[:len(dst)-moved], moved
}

// slotSize of JSON: the longest number of 32 bits, with spaces before it.
const slotSize = 10

const slotSpaces = "          "

// jsonEncoding frames a message as {"op":"message","id":         7,"partition":0,"at":"17","topic":"…","data":…}.
type jsonEncoding struct{}

func (jsonEncoding) Append(dst []byte, m *fanout.Message) ([]byte, int) {
	if m.Partition == fanout.NoPartition {
		return appendUserJSON(dst, m)
	}
	start := len(dst)
	dst = append(begin(dst), `{"op":"message","id":`...)
	slot := len(dst)
	dst = append(dst, slotSpaces+`,"partition":`...)
	dst = strconv.AppendInt(dst, int64(m.Partition), 10)
	dst = append(dst, `,"at":"`...)
	dst = appendPosition(dst, m.At)
	dst = append(append(append(dst, `","topic":"`...), m.Topic...), `","data":`...) // a topic has no character to be escaped
	dst = append(append(dst, m.Payload...), '}')
	dst, moved := finish(dst, start, ws.Text)
	return dst, slot - moved
}

func appendPosition(dst []byte, p fanout.Position) []byte {
	dst = strconv.AppendUint(dst, p.Seq, 10)
	if p.Index > 0 {
		dst = strconv.AppendUint(append(dst, '.'), uint64(p.Index), 10)
	}
	return dst
}

// binMessage is the first byte of a binary message.
const binMessage = 1

// binEncoding frames a message as: 1, id (4 bytes), partition (4), seq (8), index (4), length of the topic (2), topic, data;
// numbers in network byte order.
type binEncoding struct{}

func (binEncoding) Append(dst []byte, m *fanout.Message) ([]byte, int) {
	if m.Partition == fanout.NoPartition {
		return appendUserBinary(dst, m)
	}
	start := len(dst)
	dst = append(begin(dst), binMessage)
	slot := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.Partition))
	dst = binary.BigEndian.AppendUint64(dst, m.At.Seq)
	dst = binary.BigEndian.AppendUint32(dst, m.At.Index)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(m.Topic)))
	dst = append(append(dst, m.Topic...), m.Payload...)
	dst, moved := finish(dst, start, ws.Binary)
	return dst, slot - moved
}

// setNumber writes the number of a subscription into a frame.
func setNumber(slot []byte, encoding int, number uint32) {
	if encodings[encoding] == Binary {
		binary.BigEndian.PutUint32(slot, number)
		return
	}
	for i := slotSize - 1; ; i-- {
		slot[i] = byte('0' + number%10)
		if number /= 10; number == 0 {
			return
		}
	}
}
