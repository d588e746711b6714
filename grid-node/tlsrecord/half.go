package tlsrecord

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// suite holds the primitives of a cipher suite of TLS 1.3.
type suite struct {
	hash   func() hash.Hash
	keyLen int
	aead   func(key []byte) (cipher.AEAD, error)
}

func suiteOf(id uint16) (*suite, error) {
	switch id {
	case tls.TLS_AES_128_GCM_SHA256:
		return &suite{sha256.New, 16, newGCM}, nil
	case tls.TLS_AES_256_GCM_SHA384:
		return &suite{sha512.New384, 32, newGCM}, nil
	case tls.TLS_CHACHA20_POLY1305_SHA256:
		return &suite{sha256.New, chacha20poly1305.KeySize, chacha20poly1305.New}, nil
	}
	return nil, fmt.Errorf("cipher suite %s, allowed: one of TLS 1.3", tls.CipherSuiteName(id))
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// expand is HKDF-Expand-Label of RFC 8446, section 7.1, with an empty context.
func (s *suite) expand(secret []byte, label string, size int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(size))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(append(info, "tls13 "...), label...)
	info = append(info, 0)
	out, err := hkdf.Expand(s.hash, secret, string(info), size)
	if err != nil {
		panic(err) // only for a size that no hash can fill
	}
	return out
}

const (
	ivLen = 12
	// updateAfter is how many records are sealed with one key: RFC 8446, section 5.5, allows
	// 2^24.5 of AES-GCM.
	updateAfter = 1 << 23
)

// half is one direction: its keys, and the number of the next record.
type half struct {
	suite  *suite
	secret []byte
	aead   cipher.AEAD
	iv     [ivLen]byte
	nonce  [ivLen]byte
	seq    uint64
}

func newHalf(s *suite, secret []byte) (half, error) {
	if want := s.hash().Size(); len(secret) != want {
		return half{}, fmt.Errorf("traffic secret of %d bytes, allowed: %d", len(secret), want)
	}
	h := half{suite: s}
	return h, h.use(secret)
}

func (h *half) use(secret []byte) (err error) {
	h.secret, h.seq = secret, 0
	copy(h.iv[:], h.suite.expand(secret, "iv", ivLen))
	h.aead, err = h.suite.aead(h.suite.expand(secret, "key", h.suite.keyLen))
	return err
}

// update derives the next generation of keys (RFC 8446, section 7.2).
func (h *half) update() {
	if err := h.use(h.suite.expand(h.secret, "traffic upd", len(h.secret))); err != nil {
		panic(err) // the first keys were of the same lengths
	}
}

// next returns the nonce of the next record.
func (h *half) next() []byte {
	h.nonce = h.iv
	low := h.nonce[ivLen-8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)^h.seq)
	h.seq++
	return h.nonce[:]
}
