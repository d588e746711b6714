package main

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

var le = binary.LittleEndian

// hostileVectors are bytes that a reader refuses. Each is refused by the codec here, which also gives the reason.
func hostileVectors() (file, error) {
	f := file{name: "hostile.json", about: "These bytes are refused: as a frame of this type, or, where frame is empty, as the begin of a stream."}
	for _, s := range streams {
		_, _, err := wire.Split(s.bytes)
		o, err := refused("", "either", s.name, s.bytes, err)
		if err != nil {
			return f, err
		}
		f.vectors = append(f.vectors, o)
	}
	for i := range wire.Frames {
		row := &wire.Frames[i]
		if !ofClient(row) {
			continue
		}
		for _, h := range hostileOf(row) {
			_, err := row.Decode(h.bytes)
			o, err := refused(row.Name, sentBy(row), row.Name+", "+h.name, h.bytes, err)
			if err != nil {
				return f, err
			}
			f.vectors = append(f.vectors, o)
		}
	}
	return f, nil
}

// refused is the vector of bytes that the codec did not take.
func refused(frame, by, name string, b []byte, err error) (object, error) {
	var why *wire.FrameError
	if !errors.As(err, &why) {
		return nil, errors.Join(errors.New(name+": taken, or refused without a field"), err)
	}
	return object{{"name", name}, {"frame", frame}, {"sentBy", by}, {"field", why.Field}, {"value", why.Value}, {"allowed", why.Allowed}, {"hex", b}}, nil
}

// streams begin with a length that no frame has.
var streams = []frame{
	{name: "length 0", bytes: []byte{0, 0, 0, 0, 0x62, 0, 0, 0}},
	{name: "length 7", bytes: []byte{7, 0, 0, 0, 0x62, 0, 0}},
	{name: "length 1,048,577", bytes: []byte{1, 0, 0x10, 0, 0x62, 0, 0, 0}},
	{name: "length 4,294,967,295", bytes: []byte{0xff, 0xff, 0xff, 0xff}},
	{name: "an HTTP answer", bytes: []byte("HTTP/1.1 400 Bad Request\r\n")},
}

// hostileOf are bytes that are almost a frame of the row.
func hostileOf(row *wire.Frame) []frame {
	good := row.Encode(row.Example)
	out := []frame{
		{name: "header only", bytes: sized(good[:wire.HeaderSize])},
		{name: "another type", bytes: with(good, func(b []byte) { b[4] ^= 0x80 })},
		{name: "length without its last byte", bytes: with(good, func(b []byte) { le.PutUint32(b, uint32(len(b)-1)) })},
		{name: "length with one byte more", bytes: with(good, func(b []byte) { le.PutUint32(b, uint32(len(b)+1)) })},
	}
	for _, f := range []frame{
		{name: "the last byte cut", bytes: sized(good[:len(good)-1])},
		{name: "a byte more", bytes: sized(append(good[:len(good):len(good)], 0))},
	} {
		if _, err := row.Decode(f.bytes); err != nil { // a tail may be any bytes
			out = append(out, f)
		}
	}
	for _, c := range changes[row.Type] {
		out = append(out, frame{name: c.name, bytes: with(good, c.change)})
	}
	if row.Type == wire.TypeGoaway {
		text := append(good[:12:12], bytes.Repeat([]byte("t"), wire.MaxText+1)...)
		le.PutUint16(text[10:], wire.MaxText+1)
		out = append(out, frame{name: "text of 1,025 bytes", bytes: sized(text)})
	}
	return out
}

// sized is a copy of b with its length in the header.
func sized(b []byte) []byte {
	return with(b, func(b []byte) { le.PutUint32(b, uint32(len(b))) })
}

func with(b []byte, change func([]byte)) []byte {
	b = append([]byte(nil), b...)
	change(b)
	return b
}

// change makes a frame hostile.
type change struct {
	name   string
	change func(b []byte)
}

func set(at int, v ...byte) func([]byte) { return func(b []byte) { copy(b[at:], v) } }

// changes are values that a field must not have, by the offsets of the page.
var changes = map[wire.Type][]change{
	wire.TypeHello: {
		{"another magic", set(8, 'H', 'T', 'T', 'P')},
		{"minVersion above maxVersion", set(12, 5, 0, 4, 0)},
		{"role 0", set(16, 0)},
		{"role 6", set(16, 6)},
		{"grid beyond the frame", set(28, 255)},
	},
	wire.TypeWelcome: {
		{"grid beyond the frame", set(20, 255)},
		{"grid longer, so that member does not fit", set(20, 2)},
		{"grid shorter, so that bytes are left", set(20, 0)},
	},
	wire.TypeGoaway:       {{"textLen more than the bytes", set(10, 15)}, {"textLen less than the bytes", set(10, 13)}},
	wire.TypeAuthenticate: {{"tokenLen 0", set(16, 0)}, {"tokenLen beyond 32 bits of sense", set(16, 0xff, 0xff, 0xff, 0xff)}},
	wire.TypeTable: {
		{"no partitions", set(16, 0, 0)},
		{"1,025 partitions", set(16, 1, 4)},
		{"partition not below partitions", set(20, 8, 0)},
		{"more parts than fit", set(18, 0xff, 0xff)},
		{"fewer parts than there are", set(18, 0, 0)},
		{"9 members", set(35, 9)},
		{"more in sync than members", set(36, 3)},
		{"primary not a member", set(34, 2)},
		{"address beyond the frame", set(37, 255)},
	},
	wire.TypeOpenSession: {{"id 0", set(16, make([]byte, 16)...)}, {"attempt 0", set(40, make([]byte, 8)...)}},
	wire.TypeRegionApply: {
		{"clientSeq 0", set(24, make([]byte, 8)...)}, {"received of a number that has no answer", set(32, 2)}, {"op 3", set(40, 3)}, {"op 9", set(40, 9)},
		{"if 3", set(41, 3)}, {"no region", set(42, 0)}, {"region beyond the frame", set(42, 255)}, {"offset of a put", set(44, 1)},
		{"lifeNs -2", set(56, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)}, {"key beyond the frame", set(64, 0xff, 0xff, 0xff, 0xff)},
		{"valueLen less than the bytes", set(68, 2)}, {"a remove with a value", func(b []byte) { b[40] = wire.RegionRemove; copy(b[56:64], make([]byte, 8)) }},
		{"a clear with a key", func(b []byte) { b[40], b[41] = wire.RegionClear, 0; copy(b[56:64], make([]byte, 8)) }},
	},
	wire.TypeRegionBatch: {
		{"clientSeq 0", set(24, make([]byte, 8)...)}, {"received of a number that has no answer", set(32, 2)}, {"op 3", set(40, 3)}, {"op 7", set(40, 7)},
		{"no region", set(41, 0)}, {"region beyond the frame", set(41, 255)}, {"no items", set(42, 0, 0)}, {"513 items", set(42, 1, 2)}, {"more items than follow", set(42, 3)},
		{"fewer items than follow", set(42, 1)}, {"lifeNs of a patch", set(48, 1)}, {"patch beyond the frame", set(56, 0xff, 0xff, 0xff, 0xff)}, {"itemsLen less than the bytes", set(60, 1)},
		{"a remove with an offset", set(40, wire.RegionRemove)}, {"a key of no bytes", set(75, 0)}, {"a key beyond the items", set(75, 0xff)}, {"one byte of an item", set(86, 8)},
		{"a key twice", set(92, '1')}, {"a key before the one before it", set(92, '0')},
		{"a remove with a patch", func(b []byte) { b[40], b[44] = wire.RegionRemove, 0 }}, {"puts without values", func(b []byte) { b[40], b[44], b[56], b[60] = wire.RegionPut, 0, 0, 24 }},
	},
	wire.TypeRegionBatched: {{"512 keys skipped", set(56, 0, 2)}, {"skipped beyond 32 bits", set(60, 1)}},
	wire.TypeRegionApplied: {{"a value of no take", set(37, 0)}, {"valueLen more than the bytes", set(56, 4)}},
	wire.TypeRegionGet:     {{"mode 0", set(16, 0)}, {"mode 4", set(16, 4)}, {"no region", set(17, 0)}, {"no key", func(b []byte) { b[17], b[20] = 18, 0 }}},
	wire.TypeRegionGot:     {{"a value without a version", set(32, make([]byte, 8)...)}, {"valueLen less than the bytes", set(48, 2)}},
	wire.TypeRegionScan:    {{"mode 0", set(16, 0)}, {"no region", set(17, 0)}, {"behind 2", set(18, 2)}, {"prefixLen more than the bytes", set(28, 5)}},
	wire.TypeRegionPage: {
		{"nextLen more than the bytes", set(32, 0xff)}, {"rowsLen less than the bytes", set(36, 35)}, {"a row's key beyond the rows", set(65, 0xff)},
		{"a row cut", func(b []byte) { b[32], b[36] = 9+16, 20 }},
	},
	wire.TypeRegionListed: {{"rowsLen less than the bytes", set(32, 41)}, {"a name beyond the rows", set(72, 10)}},
	wire.TypeSubmit:       {{"clientSeq 0", set(24, make([]byte, 8)...)}},
	wire.TypeReject:       {{"textLen more than the bytes", set(36, 18)}, {"textLen less than the bytes", set(36, 16)}},
	wire.TypeNotPrimary:   {{"address beyond the frame", set(32, 255)}, {"member shorter, so that bytes are left", set(46, 22)}},
	wire.TypeGet: {
		{"by 0", set(24, 0)}, {"by 3", set(24, 3)}, {"mode 0", set(25, 0)}, {"mode 4", set(25, 4)},
		{"by ClOrdID without a key", set(24, 1)}, {"keyLen less than the bytes", set(26, 4, 0)},
	},
	wire.TypeGetReply: {
		{"status 3", set(32, 3)},
		{"not found, with an entry", set(32, 1)},
		{"freed, with an entry", set(32, 2)},
	},
	wire.TypeFollow: {
		{"window 0", set(36, 0, 0, 0, 0)}, {"filter 2", set(40, 2)}, {"no filter, with a value", set(40, 0)},
		{"hash where no entry is before", set(16, 1)}, {"name beyond the frame", set(44, 255)},
	},
	wire.TypeFollowEntries: {
		{"from 0", set(16, make([]byte, 8)...)},
		{"through beyond commitSeq", set(24, 6)},
		{"through before from-1", set(24, 3)},
		{"entries where none was examined", set(24, 4)},
	},
	wire.TypeStream: {
		{"window 0", set(36, 0, 0, 0, 0)}, {"what 0", set(40, 0)}, {"what 5", set(40, 5)}, {"what 4, with accounts", set(40, 4)}, {"hash where no entry is before", set(16, 1)},
		{"more accounts than bytes", set(44, 255)}, {"an account of no byte", set(48, 0)},
	},
	wire.TypeStreamPart: {
		{"from 0", set(16, make([]byte, 8)...)}, {"through beyond commitSeq", set(24, 6)}, {"entries where none was examined", set(24, 4)},
		{"executionBytes beyond the frame", set(60, 255)},
	},
	wire.TypeStreamSelect: {
		{"quietMs 0", set(20, 0, 0)}, {"quietMs 1001", set(20, 0xe9, 3)}, {"more selectors than bytes", set(22, 255)}, {"what 0", set(24, 0, 0)},
		{"what bit 9", set(24, 0, 2)}, {"entries that are no orders, of an account", set(24, 1, 0x80)}, {"accountLen beyond the frame", set(26, 64)}, {"fewer selectors than there are", set(22, 1)},
	},
	wire.TypeStreamSelected: {{"from 0", set(24, make([]byte, 8)...)}},
	wire.TypeFollowEnd:      {{"textLen more than the bytes", set(34, 17)}, {"textLen less than the bytes", set(34, 15)}},
	wire.TypeQuery: {
		{"timeout 0", set(32, 0, 0, 0, 0)}, {"maxBytes 0", set(36, 0, 0, 0, 0)}, {"explain 2", set(40, 2)},
		{"hash without an entry", set(16, make([]byte, 8)...)},
	},
	wire.TypeQueryRows: {{"no rows", set(16, 0, 0, 0, 0)}, {"more rows than bytes", set(16, 0xff, 0xff)}},
	wire.TypeAdvance:   {{"seq 0", set(16, make([]byte, 8)...)}, {"name beyond the frame", set(32, 255)}},
}
