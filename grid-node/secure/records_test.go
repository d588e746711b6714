package secure

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// asked notes how much each receive asks for.
type asked struct {
	net.Conn
	in    *bytes.Reader
	sizes []int
}

func (c *asked) Read(p []byte) (int, error) {
	c.sizes = append(c.sizes, len(p))
	return c.in.Read(p)
}

// Whoever sends little has a small buffer; whoever once filled it has a large one, and
// what was in the small one is not lost, wherever in a record it ended.
func TestBufferGrowsWithUse(t *testing.T) {
	for size := firstBuffer - 2*recordHeader; size < firstBuffer+2*recordHeader; size++ {
		var stream []byte
		for _, n := range []int{size, 30_000, 10} {
			stream = append(stream, 23, 3, 3, byte(n>>8), byte(n))
			stream = append(stream, bytes.Repeat([]byte{byte(n)}, n)...)
		}
		below := &asked{in: bytes.NewReader(stream)}
		got, err := io.ReadAll(NewRecords(below))
		if err != nil || !bytes.Equal(got, stream) {
			t.Fatalf("first record of %d bytes: %d of %d bytes, or others; %v", size, len(got), len(stream), err)
		}
		if below.sizes[0] != firstBuffer || below.sizes[1] < receiveBuffer-recordHeader {
			t.Errorf("asked for %v bytes, want %d and then about %d", below.sizes, firstBuffer, receiveBuffer)
		}
	}
	little := &asked{in: bytes.NewReader(bytes.Repeat([]byte{23, 3, 3, 0, 1, 'x'}, 100))}
	if _, err := io.ReadAll(NewRecords(little)); err != nil {
		t.Fatal(err)
	}
	for _, n := range little.sizes {
		if n > firstBuffer {
			t.Errorf("asked for %d bytes by who sends little", n)
		}
	}
}
