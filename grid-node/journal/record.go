package journal

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A file is a sequence of records, each padded to 8 bytes:
//
//	0  4  length of the payload
//	4  1  kind
//	5  3  "OGJ"
//	8  8  xxhash64 of its offset in the file, of bytes 0..7 and of the payload
//	16    payload
//
// The offset is part of the checksum, so a piece of an older file, or of another place, is
// no record.
const recordHeader = 16

type kind uint8

const (
	kindHead    kind = iota + 1 // begins every file: identity, and the entry before the first
	kindMark                    // begins a batch: everything before it was synced when it was written
	kindEntries                 // entries, padded, in the order of the log
	kindConfig                  // a configuration
	kindState                   // a part of the state after the freed entries
	kindEnd                     // ends a state file
)

// maxRecord bounds the payload of a record.
const maxRecord = 64 << 20

var (
	le    = binary.LittleEndian
	magic = [3]byte{'O', 'G', 'J'}
)

func padded(n int) int { return (n + 7) &^ 7 }

// appendRecord appends a record that will begin at offset at of its file.
func appendRecord(dst []byte, at int64, k kind, payload ...[]byte) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, recordHeader)...)
	for _, p := range payload {
		dst = append(dst, p...)
	}
	n := len(dst) - from - recordHeader
	dst = append(dst, make([]byte, padded(n)-n)...)
	h := dst[from:]
	le.PutUint32(h, uint32(n))
	h[4] = byte(k)
	copy(h[5:8], magic[:])
	le.PutUint64(h[8:], checksum(h[:8], at, h[recordHeader:][:n]))
	return dst
}

func checksum(head []byte, at int64, payload []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	var off [8]byte
	le.PutUint64(off[:], uint64(at))
	_, _ = d.Write(off[:])
	_, _ = d.Write(head)
	_, _ = d.Write(payload)
	return d.Sum64()
}

// record returns the record at offset at of a file, and the offset behind it; false if
// there is no whole one.
func record(file []byte, at int64) (k kind, payload []byte, next int64, ok bool) {
	b := file[at:]
	if len(b) < recordHeader || [3]byte(b[5:8]) != magic || b[4] < byte(kindHead) || b[4] > byte(kindEnd) {
		return 0, nil, 0, false
	}
	n := int(le.Uint32(b))
	if n > maxRecord || recordHeader+padded(n) > len(b) {
		return 0, nil, 0, false
	}
	payload = b[recordHeader:][:n:n]
	if le.Uint64(b[8:]) != checksum(b[:8], at, payload) {
		return 0, nil, 0, false
	}
	return kind(b[4]), payload, at + int64(recordHeader+padded(n)), true
}

// syncedBehind reports whether a whole record behind offset at shows that the file was
// synced up to it. It looks at every place where a record can begin.
func syncedBehind(file []byte, at int64) bool {
	for at = int64(padded(int(at))); at+recordHeader <= int64(len(file)); at += 8 {
		if k, _, _, ok := record(file, at); ok && k == kindMark {
			return true
		}
	}
	return false
}
