package ws

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

const hello = "Hello, world!"

var autobahnCases = sync.OnceValue(func() []autobahnCase {
	var a autobahn
	a.framing()
	a.pings()
	a.reserved()
	a.fragmentation()
	a.utf8()
	a.closes()
	a.sizes()
	a.add("12: a compressed message", in(frameOf(fin|0x40|1, "\xf2\x48\xcd\xc9\xc9\x07\x00")), "fail 1002") // permessage-deflate is not negotiated
	return a
})

func (a *autobahn) framing() {
	for i, n := range []int{0, 125, 126, 127, 128, 65535, 65536} {
		one, two := fmt.Sprintf("1.1.%d", i+1), fmt.Sprintf("1.2.%d", i+1)
		if n == 65536 {
			one, two = one+" 1.1.8", two+" 1.2.8"
		}
		s := strings.Repeat("*", n)
		a.add(fmt.Sprintf("%s: text of %d bytes", one, n), in(text(s)), "1 "+s)
		s = strings.Repeat("\xfe", n)
		a.add(fmt.Sprintf("%s: binary of %d bytes", two, n), in(binaryFrame(s)), "2 "+s)
	}
}

func (a *autobahn) pings() {
	long := strings.Repeat("\xfe", 125)
	a.add("2.1: ping without payload", in(ping("")), "ping ")
	a.add("2.2: ping with text", in(ping(hello)), "ping "+hello)
	a.add("2.3: ping with binary", in(ping("\x00\xff\xfe\xfd\xfc\xfb\x00\xff")), "ping \x00\xff\xfe\xfd\xfc\xfb\x00\xff")
	a.add("2.4 2.6: ping of 125 bytes", in(ping(long)), "ping "+long)
	a.add("2.5: ping of 126 bytes", in(ping(long+"\xfe")), "fail 1002")
	a.add("2.7: pong unasked", in(pong("")), "pong ")
	a.add("2.8: pong unasked with payload", in(pong("unasked")), "pong unasked")
	a.add("2.9: pong, then ping", in(pong("unasked"), ping("p")), "pong unasked", "ping p")
	var frames [][]byte
	var want []string
	for i := range 10 {
		frames, want = append(frames, ping(fmt.Sprint("payload-", i))), append(want, fmt.Sprint("ping payload-", i))
	}
	a.add("2.10 2.11: ten pings", frames, want...)
}

// reserved is bits and opcodes.
func (a *autobahn) reserved() {
	a.add("3.1: text with reserved bits 1", in(frameOf(fin|1<<4|1, hello)), "fail 1002")
	for rsv := byte(2); rsv <= 4; rsv++ {
		a.add(fmt.Sprintf("3.%d: text, and text with reserved bits %d", rsv, rsv), in(text(hello), frameOf(fin|rsv<<4|1, hello), ping("")), "1 "+hello, "fail 1002")
	}
	a.add("3.5: binary with reserved bits 5", in(frameOf(fin|5<<4|2, "\x00\xff")), "fail 1002")
	a.add("3.6: binary with reserved bits 6", in(frameOf(fin|6<<4|2, hello)), "fail 1002")
	a.add("3.7: close with reserved bits 7", in(frameOf(fin|7<<4|8, "")), "fail 1002")
	for kind, first := range []byte{3, 11} {
		for i := range byte(5) {
			op, payload := first+i, []string{"", hello, "", hello, hello}[i]
			frames, want := in(frameOf(fin|op, payload)), []string{"fail 1002"}
			if i > 1 {
				frames, want = in(text(hello), frames[0], ping("")), []string{"1 " + hello, "fail 1002"}
			}
			a.add(fmt.Sprintf("4.%d.%d: opcode %d", 1+kind, 1+i, op), frames, want...)
		}
	}
}

func (a *autobahn) fragmentation() {
	a.add("5.1: ping in fragments", in(frameOf(9, "a"), last("b")), "fail 1002")
	a.add("5.2: pong in fragments", in(frameOf(10, "a"), last("b")), "fail 1002")
	a.add("5.3 5.4 5.5: text in two fragments", in(first("a"), last("b")), "1 ab")
	a.add("5.6 5.7 5.8: ping between fragments", in(first("a"), ping("p"), last("b")), "ping p", "1 ab")
	a.add("5.9 5.10 5.11: continuation of nothing, the last", in(last("x"), text("t")), "fail 1002")
	a.add("5.12 5.13 5.14: continuation of nothing, not the last", in(more("x"), text("t")), "fail 1002")
	a.add("5.15: continuation behind the end", in(first("a"), last("b"), more("c"), text("t")), "1 ab", "fail 1002")
	a.add("5.16: not the last of nothing, then fragments, twice", slices.Repeat(in(more("1"), first("2"), last("3")), 2), "fail 1002")
	a.add("5.17: the last of nothing, then fragments, twice", slices.Repeat(in(last("1"), first("2"), last("3")), 2), "fail 1002")
	a.add("5.18: text within fragments", in(first("a"), text("b")), "fail 1002")
	a.add("5.19 5.20: pings among five fragments", in(first("1"), more("2"), ping("p"), more("3"), more("4"), ping("q"), last("5")), "ping p", "ping q", "1 12345")
}

func (a *autobahn) closes() {
	long := strings.Repeat("BAsd7&jh23", 256<<10/10)
	a.add("7.1.1: close behind a message", in(text(hello), closing(1000, "")), "1 "+hello, "close 1000 ")
	a.add("7.1.2: two closes", in(closing(1000, ""), closing(1000, "")), "close 1000 ")
	a.add("7.1.3: ping behind close", in(closing(1000, ""), ping("")), "close 1000 ")
	a.add("7.1.4: text behind close", in(closing(1000, ""), text(hello)), "close 1000 ")
	a.add("7.1.5: close within fragments", in(first("a"), closing(1000, ""), last("b")), "close 1000 ")
	a.add("7.1.6: close behind a long message", in(text(long), text(hello), closing(1000, ""), ping("")), "1 "+long, "1 "+hello, "close 1000 ")
	a.add("7.3.1: close without code", in(frameOf(fin|8, "")), "close 1005 ")
	a.add("7.3.2: close of one byte", in(frameOf(fin|8, "a")), "fail 1002")
	a.add("7.3.3: close with a code", in(closing(1000, "")), "close 1000 ")
	a.add("7.3.4: close with a reason", in(closing(1000, hello)), "close 1000 "+hello)
	a.add("7.3.5: the longest reason", in(closing(1000, strings.Repeat("*", 123))), "close 1000 "+strings.Repeat("*", 123))
	a.add("7.3.6: a reason too long", in(closing(1000, strings.Repeat("*", 124))), "fail 1002")
	a.add("7.5.1: reason of invalid UTF-8", in(closing(1000, greek+"\xed\xa0\x80edited")), "fail 1007")
	for i, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		a.add(fmt.Sprintf("7.7.%d: code %d", i+1, code), in(closing(code, "")), fmt.Sprintf("close %d ", code))
	}
	for i, code := range []int{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999} {
		a.add(fmt.Sprintf("7.9.%d: code %d", i+1, code), in(closing(code, "")), "fail 1002")
	}
	a.add("7.13.1: code 5000", in(closing(5000, "")), "fail 1002")
	a.add("7.13.2: code 65535", in(closing(65535, "")), "fail 1002")
}

// sizes are long messages, small fragments, and many messages.
func (a *autobahn) sizes() {
	for kind, c := range []struct {
		op   byte
		unit string
		name string
	}{{1, "*", "text"}, {2, "\xfe", "binary"}} {
		for i, size := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20} {
			number := fmt.Sprintf("9.%d.%d", 1+kind, 1+i)
			if size == 1<<20 {
				for chop := range 6 {
					number += fmt.Sprintf(" 9.%d.%d", 5+kind, 1+chop)
				}
			}
			s := strings.Repeat(c.unit, size)
			a.add(fmt.Sprintf("%s: %s of %d KiB", number, c.name, size>>10), in(frameOf(fin|c.op, s)), fmt.Sprintf("%d %s", c.op, s))
		}
		s := strings.Repeat(c.unit, 4<<20)
		for i := range 9 {
			size := min(64<<(2*i), len(s))
			a.add(fmt.Sprintf("9.%d.%d: %s of 4 MiB in fragments of %d bytes", 3+kind, 1+i, c.name, size), fragments(c.op, s, size), fmt.Sprintf("%d %s", c.op, s))
		}
		for i, size := range []int{0, 16, 64, 256, 1024, 4096} {
			s := strings.Repeat(c.unit, size)
			a.add(fmt.Sprintf("9.%d.%d: 1,000 messages of %s of %d bytes", 7+kind, 1+i, c.name, size), slices.Repeat(in(frameOf(fin|c.op, s)), 1000),
				slices.Repeat([]string{fmt.Sprintf("%d %s", c.op, s)}, 1000)...)
		}
	}
	s := strings.Repeat("*", 65536)
	a.add("10.1.1: text of 65536 bytes in fragments of 1300", fragments(1, s, 1300), "1 "+s)
}
