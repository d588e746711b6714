package fanout

import (
	"encoding/binary"
	"unsafe"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// ring keeps the last messages: bytes in one arena, and an entry for each. An entry's number counts all messages since the
// start. Bytes of an entry are in one piece; an entry that would go over the end of the arena begins at its start.
type ring struct {
	arena      []byte
	entries    []entry // of number n: n % len(entries)
	tail, head uint64  // numbers of the oldest entry and of the next
	at         int     // in the arena, where the next entry begins
	mark       uint64  // of its numbers: none, or userBit
	waits      uint64  // no queue refers to a message before this one
}

type entry struct {
	start     int // in the arena
	end       int
	topic     uint32 // bytes of the parts, in this order
	fields    uint32
	payload   uint32
	frames    [MaxEncodings]frame
	partition uint32
	at        Position
	before    Position // of the message before in the partition, or up to where there was none
	partial   bool
}

// frame is a message as one encoding sends it; size 0: not made.
type frame struct {
	offset, size, slot uint32 // in the entry's bytes
}

// newRing takes its memory from alloc, if that has some: neither bytes nor entries have pointers.
func newRing(bytes, entries int, alloc func(int) []byte) ring {
	const size = int(unsafe.Sizeof(entry{}))
	if alloc != nil {
		at := (bytes + 63) &^ 63
		if b := alloc(at + entries*size); b != nil {
			return ring{arena: b[:bytes:bytes], entries: unsafe.Slice((*entry)(unsafe.Pointer(&b[at])), entries)}
		}
	}
	return ring{arena: make([]byte, bytes), entries: make([]entry, entries)}
}

func (r *ring) entry(n uint64) *entry { return &r.entries[n%uint64(len(r.entries))] }

func (r *ring) bytes(e *entry) []byte { return r.arena[e.start:e.end:e.end] }

func (r *ring) topic(e *entry) []byte { return r.arena[e.start : e.start+int(e.topic)] }

// place returns where size bytes go, and whether the oldest entry is in the way.
func (r *ring) place(size int) (start int, blocked bool) {
	if r.head-r.tail == uint64(len(r.entries)) {
		return 0, true
	}
	start = r.at
	if r.tail == r.head {
		if start+size > len(r.arena) {
			start = 0
		}
		return start, false
	}
	oldest := r.entry(r.tail).start
	if start > oldest { // free: behind the newest up to the end, and before the oldest
		if start+size <= len(r.arena) {
			return start, false
		}
		start = 0
	}
	return start, start+size >= oldest // they never touch: equal would mean empty or full
}

// push takes the entry whose bytes are at start, and returns its number with the mark.
func (r *ring) push(e entry) uint64 {
	*r.entry(r.head) = e
	r.at = e.end
	r.head++
	return r.head - 1 | r.mark
}

// message returns an entry as the message that was published. Fields are appended to the buffer.
func (r *ring) message(e *entry, fields []topics.Value) Message {
	b := r.bytes(e)
	f, p := int(e.topic), int(e.topic+e.fields)
	return Message{Partition: int(int32(e.partition)), At: e.at, Topic: b[:f:f], Fields: readFields(b[f:p], fields[:0]),
		Payload: b[p : p+int(e.payload) : p+int(e.payload)]}
}

const (
	fieldAbsent = iota
	fieldBytes
	fieldNumber
)

func appendFields(dst []byte, fields []topics.Value) []byte {
	for i := range fields {
		switch v := &fields[i]; {
		case !v.Set:
			dst = append(dst, fieldAbsent)
		case v.Bytes != nil:
			dst = binary.AppendUvarint(append(dst, fieldBytes), uint64(len(v.Bytes)))
			dst = append(dst, v.Bytes...)
		default:
			dst = binary.AppendVarint(append(dst, fieldNumber, v.Scale), v.Num)
		}
	}
	return dst
}

func readFields(b []byte, fields []topics.Value) []topics.Value {
	for len(b) > 0 {
		switch b[0] {
		case fieldBytes:
			n, k := binary.Uvarint(b[1:])
			end := 1 + k + int(n)
			fields = append(fields, topics.TextValue(b[1+k:end:end]))
			b = b[end:]
		case fieldNumber:
			n, k := binary.Varint(b[2:])
			fields = append(fields, topics.Value{Num: n, Scale: b[1], Set: true})
			b = b[2+k:]
		default:
			fields = append(fields, topics.Value{})
			b = b[1:]
		}
	}
	return fields
}
