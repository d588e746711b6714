package ws

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// frameOf is a frame of a client. Its first byte is as given.
func frameOf(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x12, 0x34, 0xab, 0xcd}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i%4])
	}
	return b
}

const fin = 0x80

func text(s string) []byte        { return frameOf(fin|1, s) }
func binaryFrame(s string) []byte { return frameOf(fin|2, s) }
func ping(s string) []byte        { return frameOf(fin|9, s) }
func pong(s string) []byte        { return frameOf(fin|10, s) }
func first(s string) []byte       { return frameOf(1, s) }
func more(s string) []byte        { return frameOf(0, s) }
func last(s string) []byte        { return frameOf(fin, s) }
func closing(code int, s string) []byte {
	return frameOf(fin|8, string(binary.BigEndian.AppendUint16(nil, uint16(code)))+s)
}

// events are what a Handler got, in order; an error of Decode is the last.
type events struct{ list []string }

func (e *events) add(format string, args ...any) error {
	e.list = append(e.list, fmt.Sprintf(format, args...))
	return nil
}
func (e *events) OnMessage(op Opcode, p []byte) error { return e.add("%d %s", op, p) }
func (e *events) OnPing(p []byte) error               { return e.add("ping %s", p) }
func (e *events) OnPong(p []byte) error               { return e.add("pong %s", p) }
func (e *events) OnClose(code int, p []byte) error    { return e.add("close %d %s", code, p) }

var testLimits = Limits{Message: 1 << 20, Fragments: 1000}

// decode decodes the input, which arrives in pieces of that many bytes.
func decode(input []byte, piece int, limits Limits) []string {
	d, e, held := Decoder{Limits: &limits}, &events{}, []byte(nil)
	for len(input) > 0 {
		n := min(piece, len(input))
		held = append(held, input[:n]...)
		input = input[n:]
		used, err := d.Decode(held, e)
		if failure, ok := errors.AsType[*Error](err); ok {
			return append(e.list, fmt.Sprintf("fail %d", failure.Code))
		} else if err != nil {
			return append(e.list, err.Error())
		}
		held = held[:copy(held, held[used:])]
	}
	return e.list
}

type autobahnCase struct {
	name   string // as in the Autobahn test suite
	frames [][]byte
	want   []string
}

func autobahnCases() []autobahnCase {
	in := func(frames ...[]byte) [][]byte { return frames }
	var list []autobahnCase
	add := func(name string, frames [][]byte, want ...string) {
		list = append(list, autobahnCase{name, frames, want})
	}
	for i, n := range []int{0, 125, 126, 127, 128, 65535, 65536} {
		s := strings.Repeat("*", n)
		add(fmt.Sprintf("1.1.%d text of %d bytes", i+1, n), in(text(s)), "1 "+s)
		s = strings.Repeat("\xfe", n)
		add(fmt.Sprintf("1.2.%d binary of %d bytes", i+1, n), in(binaryFrame(s)), "2 "+s)
	}
	add("2.1 ping without payload", in(ping("")), "ping ")
	add("2.2 ping with text", in(ping("Hello, world!")), "ping Hello, world!")
	add("2.3 ping with binary", in(ping("\x00\xff\xfe")), "ping \x00\xff\xfe")
	add("2.4 ping of 125 bytes", in(ping(strings.Repeat("\xfe", 125))), "ping "+strings.Repeat("\xfe", 125))
	add("2.5 ping of 126 bytes", in(ping(strings.Repeat("\xfe", 126))), "fail 1002")
	add("2.7 pong unasked", in(pong("")), "pong ")
	add("2.8 pong unasked with payload", in(pong("unasked")), "pong unasked")
	add("2.9 pong, then ping", in(pong("unasked"), ping("p")), "pong unasked", "ping p")
	add("2.10 ten pings", slices.Repeat(in(ping("p")), 10), slices.Repeat([]string{"ping p"}, 10)...)
	for rsv := byte(1); rsv <= 7; rsv++ {
		add(fmt.Sprintf("3.%d reserved bits", rsv), in(text("ok"), frameOf(fin|rsv<<4|1, "x"), ping("")), "1 ok", "fail 1002")
	}
	for i, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		add(fmt.Sprintf("4.%d.%d opcode %d", 1+i/5, 1+i%5, op), in(text("ok"), frameOf(fin|op, "x"), ping("")), "1 ok", "fail 1002")
	}
	add("5.1 ping in fragments", in(frameOf(9, "a"), last("b")), "fail 1002")
	add("5.2 pong in fragments", in(frameOf(10, "a"), last("b")), "fail 1002")
	add("5.3 text in two fragments", in(first("a"), last("b")), "1 ab")
	add("5.6 ping between fragments", in(first("a"), ping("p"), last("b")), "ping p", "1 ab")
	add("5.9 continuation of nothing", in(last("x"), text("t")), "fail 1002")
	add("5.12 first continuation of nothing", in(more("x"), text("t")), "fail 1002")
	add("5.15 continuation behind the end", in(first("a"), last("b"), more("c"), text("t")), "1 ab", "fail 1002")
	add("5.18 text within fragments", in(first("a"), text("b")), "fail 1002")
	add("5.19 pings among five fragments", in(first("1"), more("2"), ping("p"), more("3"), more("4"), ping("q"), last("5")), "ping p", "ping q", "1 12345")
	add("6.1.1 empty text", in(text("")), "1 ")
	add("6.1.2 three empty fragments", in(first(""), more(""), last("")), "1 ")
	add("6.1.3 empty ends", in(first(""), more("x"), last("")), "1 x")
	add("6.2.1 UTF-8", in(text("Hello-µ@ßöäüàá-UTF-8!!")), "1 Hello-µ@ßöäüàá-UTF-8!!")
	add("6.2.2 UTF-8 cut between characters", in(first("Hello-µ@ßöä"), last("üàá-UTF-8!!")), "1 Hello-µ@ßöäüàá-UTF-8!!")
	add("6.2.3 UTF-8 cut within characters", in(first("\xce"), more("\xba\xe1\xbd"), last("\xb9")), "1 \xce\xba\xe1\xbd\xb9")
	add("6.3.1 invalid UTF-8", in(text("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited")), "fail 1007")
	add("6.3.2 invalid UTF-8 in fragments", in(first("\xed\xa0"), last("\x80")), "fail 1007")
	for name, s := range map[string]string{
		"6.7 two bytes": "\xc2\x80", "6.8 three bytes": "\xe0\xa0\x80", "6.9 four bytes": "\xf0\x90\x80\x80",
		"6.11 last of two": "\xdf\xbf", "6.11.2 last of three": "\xef\xbf\xbf", "6.11.3 last of all": "\xf4\x8f\xbf\xbf",
		"6.22 U+FFFE": "\xef\xbf\xbe", "6.22 U+FFFF plane 1": "\xf0\x9f\xbf\xbf", "6.23 U+FFFD": "\xef\xbf\xbd", "6.6.7 NUL": "\x00",
	} {
		add(name, in(text(s)), "1 "+s)
	}
	for name, s := range map[string]string{
		"6.10 five bytes": "\xf8\x88\x80\x80\x80", "6.10 six bytes": "\xfc\x84\x80\x80\x80\x80", "6.13 behind the last": "\xf4\x90\x80\x80",
		"6.14 continuation alone": "\x80", "6.14 two continuations": "\xbf\xbf", "6.15 lonely start": "\xc0 ", "6.16 cut short": "\xe0\x80",
		"6.17 several cut short": "\xc3\xe2\x82", "6.18 impossible bytes": "\xfe\xfe\xff\xff", "6.19 overlong": "\xc0\xaf",
		"6.19 overlong of three": "\xe0\x80\xaf", "6.20 overlong limit": "\xf0\x8f\xbf\xbf", "6.20 overlong NUL": "\xc0\x80",
		"6.21 surrogate": "\xed\xa0\x80", "6.21 pair of surrogates": "\xed\xa0\x80\xed\xb0\x80", "6.6 cut at the end": "\xce\xba\xe1",
	} {
		add(name, in(text(s)), "fail 1007")
	}
	add("7.1.1 close behind a message", in(text("a"), closing(1000, "")), "1 a", "close 1000 ")
	add("7.1.2 two closes", in(closing(1000, ""), closing(1000, "")), "close 1000 ")
	add("7.1.3 ping behind close", in(closing(1000, ""), ping("p")), "close 1000 ")
	add("7.1.4 text behind close", in(closing(1000, ""), text("t")), "close 1000 ")
	add("7.1.5 close within fragments", in(first("a"), closing(1000, ""), last("b")), "close 1000 ")
	add("7.1.6 close behind a long message", in(binaryFrame(strings.Repeat("B", 256<<10)), closing(1000, "")), "2 "+strings.Repeat("B", 256<<10), "close 1000 ")
	add("7.3.1 close without code", in(frameOf(fin|8, "")), "close 1005 ")
	add("7.3.2 close of one byte", in(frameOf(fin|8, "a")), "fail 1002")
	add("7.3.4 close with a reason", in(closing(1000, "Hello, world!")), "close 1000 Hello, world!")
	add("7.3.5 the longest reason", in(closing(1000, strings.Repeat("*", 123))), "close 1000 "+strings.Repeat("*", 123))
	add("7.3.6 a reason too long", in(closing(1000, strings.Repeat("*", 124))), "fail 1002")
	add("7.5.1 reason of invalid UTF-8", in(closing(1000, "\xce\xba\xed\xa0\x80")), "fail 1007")
	for i, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		add(fmt.Sprintf("7.7.%d code %d", i+1, code), in(closing(code, "")), fmt.Sprintf("close %d ", code))
	}
	for i, code := range []int{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999} {
		add(fmt.Sprintf("7.9.%d code %d", i+1, code), in(closing(code, "")), "fail 1002")
	}
	add("7.13.1 code 5000", in(closing(5000, "")), "fail 1002")
	add("7.13.2 code 65535", in(closing(65535, "")), "fail 1002")
	message := strings.Repeat("\xce\xba", 1<<19)
	add("9.1 text of 1 MiB", in(text(message)), "1 "+message)
	frames, s := in(first("")), strings.Repeat("*", 1024)
	for range 900 {
		frames = append(frames, more(s))
	}
	add("9.3 text in 900 fragments of 1 KiB", append(frames, last("")), "1 "+strings.Repeat(s, 900))
	add("10.1.1 text of 65536 bytes in fragments of 1300", fragments(strings.Repeat("*", 65536), 1300), "1 "+strings.Repeat("*", 65536))
	add("12 a compressed message", in(frameOf(fin|0x40|1, "\xf2\x48\xcd\xc9\xc9\x07\x00")), "fail 1002") // permessage-deflate is not negotiated
	return list
}

func fragments(s string, size int) (list [][]byte) {
	list = append(list, first(s[:size]))
	for s = s[size:]; len(s) > size; s = s[size:] {
		list = append(list, more(s[:size]))
	}
	return append(list, last(s))
}

// The cases of the Autobahn test suite for servers, by their numbers there: its sections 12 and 13 are of an extension that
// is not negotiated, 9.5 to 9.8 are the same messages in smaller pieces.
func TestAutobahnCases(t *testing.T) {
	for _, c := range autobahnCases() {
		t.Run(c.name, func(t *testing.T) {
			input := slices.Concat(c.frames...)
			for _, piece := range []int{len(input), 997, 1} {
				if piece == 1 && len(input) > 10_000 {
					continue // buffered by the caller: quadratic in this test only
				}
				if got := decode(slices.Clone(input), piece, testLimits); !slices.Equal(got, c.want) {
					t.Errorf("in pieces of %d bytes: %.200q, want %.200q", piece, got, c.want)
				}
			}
		})
	}
}
