package peerkey

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
)

// A record is its length (u32, little-endian, of the whole record), the AES-256-GCM
// ciphertext, and a tag of 16 bytes. The nonce is the number of the record, each direction
// has its own key: a modified, missing, repeated or reflected record does not open.
const (
	recordHeader = 4
	recordTag    = 16
	// MaxRecord is the most data in one record, in bytes.
	MaxRecord = 32 << 10
	minSealed = recordHeader + recordTag + 1
	maxSealed = recordHeader + recordTag + MaxRecord
	// rekeyAfter is how many records use one key: well below the limit of AES-GCM.
	rekeyAfter = 1 << 23
)

// ErrRecord means that the received data is not the next that the other end sent. The
// connection is unusable.
var ErrRecord = errors.New("a record was modified, repeated or lost on the way")

// Records seals outgoing and opens incoming data of one connection. It allocates only to
// grow a buffer.
type Records struct{ out, in direction }

// direction is one key and the number of the next record.
type direction struct {
	key   Key
	aead  cipher.AEAD
	nonce [12]byte // four zero bytes and the number, big-endian, as in Noise
	n     uint64
	until uint64 // records for which key is good
}

func newRecords(out, in Key) *Records {
	r := &Records{}
	r.out.use(out)
	r.in.use(in)
	return r
}

func (d *direction) use(key Key) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // only for a key that is not 32 bytes
	}
	if d.aead, err = cipher.NewGCM(block); err != nil {
		panic(err)
	}
	d.key, d.until = key, d.n+rekeyAfter
}

// next returns the nonce of the next record, and rekeys when due.
func (d *direction) next() []byte {
	if d.n == d.until {
		// REKEY of Noise: the new key encrypts zeros under the last nonce.
		binary.BigEndian.PutUint64(d.nonce[4:], ^uint64(0))
		var zeros Key
		d.use(Key(d.aead.Seal(nil, d.nonce[:], zeros[:], nil)))
	}
	binary.BigEndian.PutUint64(d.nonce[4:], d.n)
	d.n++
	return d.nonce[:]
}

// Seal appends data to dst in as many records as needed.
func (r *Records) Seal(dst, data []byte) []byte {
	for len(data) > 0 {
		n := min(len(data), MaxRecord)
		at := len(dst)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(recordHeader+n+recordTag))
		nonce := r.out.next()
		dst = r.out.aead.Seal(dst, nonce, data[:n], dst[at:at+recordHeader])
		data = data[n:]
	}
	return dst
}

// Open appends the data of the whole records of sealed to dst; rest is the incomplete last
// record. dst and sealed do not overlap.
func (r *Records) Open(dst, sealed []byte) (data, rest []byte, err error) {
	for len(sealed) >= recordHeader {
		size := binary.LittleEndian.Uint32(sealed)
		if size < minSealed || size > maxSealed {
			return dst, sealed, fmt.Errorf("%w: its length is %d, allowed: %d..%d", ErrRecord, size, minSealed, maxSealed)
		}
		if uint32(len(sealed)) < size {
			break
		}
		nonce := r.in.next()
		opened, err := r.in.aead.Open(dst, nonce, sealed[recordHeader:size], sealed[:recordHeader])
		if err != nil {
			return dst, sealed, ErrRecord
		}
		dst, sealed = opened, sealed[size:]
	}
	return dst, sealed, nil
}

// End appends nothing: a connection of nodes ends with a frame with the reason.
func (r *Records) End(dst []byte, _ error) []byte { return dst }
