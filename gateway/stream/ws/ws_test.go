package ws

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLimits(t *testing.T) {
	limits := Limits{Message: 100, Fragments: 3}
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   []string
	}{
		{"the longest message", [][]byte{text(strings.Repeat("a", 100))}, []string{"1 " + strings.Repeat("a", 100)}},
		{"one byte more", [][]byte{text(strings.Repeat("a", 101))}, []string{"fail 1009"}},
		{"a length, and nothing behind it", [][]byte{{fin | 2, 0x80 | 127, 0, 0, 0, 1, 0, 0, 0, 0}}, []string{"fail 1009"}},
		{"fragments together", [][]byte{first(strings.Repeat("a", 60)), more(strings.Repeat("b", 41))}, []string{"fail 1009"}},
		{"four fragments", [][]byte{first("a"), more("b"), more("c"), last("d")}, []string{"fail 1008"}},
		{"not masked", [][]byte{{fin | 1, 1, 'a'}}, []string{"fail 1002"}},
		{"a length of 5 in 2 bytes", [][]byte{{fin | 1, 0x80 | 126, 0, 5, 0, 0, 0, 0}}, []string{"fail 1002"}},
		{"a length of 300 in 8 bytes", [][]byte{{fin | 1, 0x80 | 127, 0, 0, 0, 0, 0, 0, 1, 44}}, []string{"fail 1002"}},
		{"a length of 2^63", [][]byte{{fin | 1, 0x80 | 127, 0x80, 0, 0, 0, 0, 0, 0, 0}}, []string{"fail 1002"}},
	} {
		if got := decode(slices.Concat(c.frames...), 1, limits); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, n := range []int{0, 125, 126, 65535, 65536} {
		b := AppendFrame(nil, Binary, make([]byte, n))
		if want := map[int]int{0: 2, 125: 2, 126: 4, 65535: 4, 65536: 10}[n]; len(b) != want+n || b[0] != fin|2 || b[1]&maskBit != 0 {
			t.Errorf("%d bytes: header %x, want %d bytes", n, b[:len(b)-n], want)
		}
	}
	if b := AppendClose(nil, StatusPolicy, strings.Repeat("ä", 100)); len(b) != 2+2+122 || !utf8.Valid(b[4:]) {
		t.Errorf("a long reason becomes %q", b)
	}
	if b := AppendClose(nil, StatusNone, ""); !bytes.Equal(b, []byte{0x88, 0}) {
		t.Errorf("close without code is %x", b)
	}
}

func TestDecodeAllocsNothing(t *testing.T) {
	input := slices.Concat(text(`{"op":"subscribe"}`), ping("p"), binaryFrame(strings.Repeat("x", 1000)))
	b, d, h := make([]byte, len(input)), Decoder{Limits: &testLimits}, counter{}
	if n := testing.AllocsPerRun(100, func() {
		copy(b, input)
		if used, err := d.Decode(b, &h); err != nil || used != len(b) {
			t.Fatal(used, err)
		}
	}); n != 0 || h.n != 3*101 {
		t.Errorf("%v allocations, %d events", n, h.n)
	}
}

type counter struct{ n int }

func (c *counter) OnMessage(Opcode, []byte) error { c.n++; return nil }
func (c *counter) OnPing([]byte) error            { c.n++; return nil }
func (c *counter) OnPong([]byte) error            { c.n++; return nil }
func (c *counter) OnClose(int, []byte) error      { c.n++; return nil }

const request = "GET /stream HTTP/1.1\r\nHost: desk.example.com\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat, ordergrid.json.v1\r\n"

var testTerms = Terms{Paths: []string{"/stream"}, Subprotocols: []string{"ordergrid.json.v1", "ordergrid.bin.v1"}, Origins: []string{"https://app.example.com"}}

func TestHandshake(t *testing.T) {
	whole := []byte(request + "Origin: https://APP.example.com\r\n\r\n")
	for n := range whole {
		if h, used, err := ParseHandshake(whole[:n], &testTerms); h != nil || used != 0 || err != nil {
			t.Fatalf("%d bytes: %v, %d, %v", n, h, used, err)
		}
	}
	h, n, err := ParseHandshake(append(whole, "more"...), &testTerms)
	if err != nil || n != len(whole) || h.Subprotocol != "ordergrid.json.v1" {
		t.Fatalf("%+v, %d, %v", h, n, err)
	}
	// The key and its answer are those of RFC 6455, section 1.3.
	if got := string(h.AppendAccept(nil)); !strings.Contains(got, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: ordergrid.json.v1\r\n\r\n") || !strings.HasPrefix(got, "HTTP/1.1 101 ") {
		t.Errorf("answer %q", got)
	}
}

func TestHandshakeRefusals(t *testing.T) {
	for _, c := range []struct {
		old, new string
		status   int
		want     string
	}{
		{"/stream", "/other", 404, `path is "/other", allowed: /stream`},
		{"GET", "POST", 400, "request is POST"},
		{"HTTP/1.1", "HTTP/1.0", 400, "allowed: GET with HTTP/1.1"},
		{"GET /stream HTTP/1.1", "nonsense", 400, "not HTTP/1.1"},
		{"Host: desk.example.com\r\n", "", 400, "and Host"},
		{"Upgrade: websocket", "Upgrade: h2c", 426, "Upgrade: websocket"},
		{"keep-alive, Upgrade", "keep-alive", 426, "Connection: Upgrade"},
		{"Version: 13", "Version: 8", 426, `Sec-WebSocket-Version is "8", allowed: 13`},
		{"dGhlIHNhbXBsZSBub25jZQ==", "dGhl", 400, "16 bytes in base64"},
		{"chat, ordergrid.json.v1", "chat", 400, `is "chat", allowed: ordergrid.json.v1, ordergrid.bin.v1`},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nOrigin: https://evil.example.com\r\n", 403, "https://evil.example.com"},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nOrigin: null\r\n", 403, "null"},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nOrigin: https://desk.example.com.evil.com\r\n", 403, "evil"},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nOrigin: https://desk.example.com\r\nOrigin: https://evil.example.com\r\n", 403, "evil"},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nContent-Length: 5\r\n", 400, "has a body"},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nTransfer-Encoding: chunked\r\n", 400, "has a body"},
		{"Upgrade: websocket\r\n", "Upgrade: websocket\r\nX: " + strings.Repeat("x", MaxRequest) + "\r\n", 431, "longer than 8192 bytes"},
	} {
		text := strings.Replace(request, c.old, c.new, 1) + "\r\n"
		_, _, err := ParseHandshake([]byte(text), &testTerms)
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || refusal.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want %d %s", c.new, c.old, err, c.status, c.want)
			continue
		}
		if got := string(refusal.AppendRefusal(nil)); !strings.HasPrefix(got, "HTTP/1.1 ") || !strings.HasSuffix(got, refusal.Reason+"\n") || !strings.Contains(got, http.StatusText(c.status)) {
			t.Errorf("answer %q", got)
		}
	}
	same := request + "Origin: https://desk.example.com\r\n\r\n"
	if _, _, err := ParseHandshake([]byte(same), &testTerms); err != nil {
		t.Errorf("a page of the server itself: %v", err)
	}
}

// However input arrives, the same is decoded; and a message that the package frames is decoded again.
func FuzzDecode(f *testing.F) {
	for _, c := range autobahnCases() {
		if input := slices.Concat(c.frames...); len(input) < 1000 {
			f.Add(input, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, piece uint8) {
		limits := Limits{Message: 300, Fragments: 5}
		whole := decode(slices.Clone(input), len(input)+1, limits)
		if got := decode(slices.Clone(input), int(piece)+1, limits); !slices.Equal(got, whole) {
			t.Errorf("in pieces of %d bytes: %q, in one: %q", int(piece)+1, got, whole)
		}
		for _, e := range whole {
			if len(e) > 2+300 {
				t.Errorf("%d bytes are over the limit", len(e))
			}
		}
	})
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte(request + "\r\n"))
	f.Add([]byte(request + "Origin: https://app.example.com\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := ParseHandshake(b, &testTerms)
		if refusal, ok := errors.AsType[*Refusal](err); err != nil && (!ok || refusal.Status < 400) || n > len(b) || (h == nil) != (n == 0) {
			t.Fatalf("%v, %d, %v", h, n, err)
		}
		if h == nil {
			return
		}
		answer := string(h.AppendAccept(nil))
		if strings.Count(answer, "\r\n\r\n") != 1 || strings.Count(answer, "\r\n") != 6 {
			t.Errorf("answer %q", answer)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	input := text(strings.Repeat("x", 100))
	buf, d, h := make([]byte, len(input)), Decoder{Limits: &testLimits}, counter{}
	for b.Loop() {
		copy(buf, input)
		if _, err := d.Decode(buf, &h); err != nil {
			b.Fatal(err)
		}
	}
}
