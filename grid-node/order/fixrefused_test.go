package order

import (
	"bytes"
	"strings"
	"testing"
)

// TestFixRefused: what is appended is read again, cut where it is too long; another record is none.
func TestFixRefused(t *testing.T) {
	message := []byte("8=FIX.4.4\x019=5\x0135=D\x01" + strings.Repeat("x", 2*MaxFixBody))
	b := AppendFixRefused([]byte("before"), 5, 11, 1<<40, strings.Repeat("t", 600), message)[6:]
	r, ok := ParseFixRefused(b)
	if !ok || len(b) != MaxFixBody || r.Code != 5 || r.Tag != 11 || r.Detail != 1<<40 || len(r.Text) != 512 || !bytes.Equal(r.Message, message[:MaxFixBody-18-512]) {
		t.Fatalf("%d bytes, read as %v: %+v", len(b), ok, r)
	}
	for _, other := range [][]byte{nil, b[:17], b[:18+511], append([]byte{2, 0}, b[2:]...)} {
		if _, ok := ParseFixRefused(other); ok {
			t.Errorf("%d bytes of kind %v are taken for a refusal", len(other), other[:min(2, len(other))])
		}
	}
	if !IsCopied(b) || IsCopied(AppendFixRefused(nil, 5, 0, 0, "no", nil)) || IsCopied(AppendFixRefused(nil, 5, 0, 0, "no", []byte("8=FIX.4.4\x019=5\x0135=F\x01"))) {
		t.Error("a copy is made of refusals of orders, and of no others")
	}
}
