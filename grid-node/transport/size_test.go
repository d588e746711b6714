package transport

import (
	"testing"
	"unsafe"
)

// Connections are many: one at rest is small. The size is that of a class of Go's heap.
func TestSizeOfAConn(t *testing.T) {
	if n := unsafe.Sizeof(Conn{}); n > 240 {
		t.Errorf("a Conn has %d bytes, want at most 240", n)
	}
}

// A buffer of input that was not used is given back; one that was used is kept until the next look, and a long one longer.
func TestInputBuffersAreTrimmed(t *testing.T) {
	for _, c := range []struct {
		used uint8
		size int
		left []bool // after each look
	}{{aShort, 100, []bool{true, false}}, {0, 100, []bool{false}}, {aShort, 128 << 10, []bool{false}}, {aLong, 128 << 10, []bool{true, false}}} {
		k := &Conn{in: make([]byte, 0, c.size), usedIn: c.used}
		for i, left := range c.left {
			if k.trimInput(); (cap(k.in) > 0) != left {
				t.Errorf("%d bytes, used for %d: %d bytes after look %d", c.size, c.used, cap(k.in), i+1)
			}
		}
		k.in = append(k.in, 1)
		if k.trimInput(); len(k.in) != 1 {
			t.Error("input that is not consumed is lost")
		}
	}
}
