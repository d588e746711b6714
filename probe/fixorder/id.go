package fixorder

import (
	"crypto/rand"
	"fmt"
)

// IDSize is the length of every ClOrdID, in bytes: 'P', 8 characters of run, 2
// of probe, 9 digits of index.
const IDSize = 20

// MaxProbes is the largest number of probes of one run.
const MaxProbes = 256

// MaxIndex is the largest order index.
const MaxIndex = 999_999_999

const (
	alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // Crockford base 32
	runChars = 8
	// MaxRun is the largest run number: 40 bits.
	MaxRun = 1<<(5*runChars) - 1
)

// ID identifies the source of orders. With the index it makes a ClOrdID that is unique over runs
// (40 random bits), probes and publishing threads: threads of a probe share its index.
type ID struct {
	Run   uint64 // 0..MaxRun
	Probe int    // 0..MaxProbes-1
}

// NewRun returns a random run number.
func NewRun() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n & MaxRun
}

func (id ID) check() error {
	if id.Run > MaxRun {
		return fmt.Errorf("run %d: must be 0 to %d", id.Run, uint64(MaxRun))
	}
	if id.Probe < 0 || id.Probe >= MaxProbes {
		return fmt.Errorf("probe %d: must be 0 to %d", id.Probe, MaxProbes-1)
	}
	return nil
}

// RunText is the run as in a ClOrdID.
func RunText(run uint64) string {
	var b [runChars]byte
	putBase32(b[:], run)
	return string(b[:])
}

// ParseRun is the inverse of RunText.
func ParseRun(s string) (uint64, error) {
	if n, ok := base32(s); ok && len(s) == runChars {
		return n, nil
	}
	return 0, fmt.Errorf("run %q: must be %d characters of %s", s, runChars, alphabet)
}

func (id ID) put(b []byte, index int64) {
	b[0] = 'P'
	putBase32(b[1:1+runChars], id.Run)
	putBase32(b[1+runChars:3+runChars], uint64(id.Probe))
	putDigits(b[3+runChars:IDSize], uint64(index))
}

// ParseID parses a ClOrdID. ok is false for one not made by this package.
func ParseID(b []byte) (id ID, index int64, ok bool) {
	if len(b) != IDSize || b[0] != 'P' {
		return ID{}, 0, false
	}
	run, ok1 := base32(string(b[1 : 1+runChars]))
	probe, ok2 := base32(string(b[1+runChars : 3+runChars]))
	if !ok1 || !ok2 || probe >= MaxProbes {
		return ID{}, 0, false
	}
	for _, c := range b[3+runChars:] {
		if c < '0' || c > '9' {
			return ID{}, 0, false
		}
		index = index*10 + int64(c-'0')
	}
	return ID{Run: run, Probe: int(probe)}, index, true
}

func putBase32(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = alphabet[n&31]
		n >>= 5
	}
}

// base32Value maps a character to its value; 255 is not in the alphabet.
var base32Value = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range []byte(alphabet) {
		t[c] = byte(i)
	}
	return t
}()

func base32(s string) (n uint64, ok bool) {
	for i := range len(s) {
		v := base32Value[s[i]]
		if v == 255 {
			return 0, false
		}
		n = n<<5 | uint64(v)
	}
	return n, true
}

// ClOrdID is the text of an order's ClOrdID (11).
func (id ID) ClOrdID(index int64) string {
	var b [IDSize]byte
	id.put(b[:], index)
	return string(b[:])
}
