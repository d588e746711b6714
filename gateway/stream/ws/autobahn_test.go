package ws

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
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
	mask := []byte{0x12, 0x34, 0xab, 0xcd}
	b = append(append(b, mask...), payload...)
	masked := b[len(b)-len(payload):]
	subtle.XORBytes(masked, masked, bytes.Repeat(mask, len(payload)/4+1))
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

var testLimits = Limits{Message: 16 << 20, Fragments: 1 << 16}

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
		if used > 0 {
			held = held[:copy(held, held[used:])]
		}
	}
	return e.list
}

// autobahnCase has the numbers of the Autobahn test suite, 25.10.1, before the colon of its name. Those of one differ in the
// pieces in which the input arrives.
type autobahnCase struct {
	name   string
	frames [][]byte
	want   []string
}

func (c *autobahnCase) numbers() []string {
	numbers, _, _ := strings.Cut(c.name, ":")
	return strings.Fields(numbers)
}

type autobahn []autobahnCase

func (a *autobahn) add(name string, frames [][]byte, want ...string) {
	*a = append(*a, autobahnCase{name, frames, want})
}

// in is what a client sends.
func in(frames ...[]byte) [][]byte { return frames }

// fragments are those of a message of an opcode, of a size.
func fragments(op byte, s string, size int) (list [][]byte) {
	for ; len(s) > size; s, op = s[size:], 0 {
		list = append(list, frameOf(op, s[:size]))
	}
	return append(list, frameOf(fin|op, s))
}

// The cases of the Autobahn test suite for servers, as far as they are about what is decoded. Each arrives in one piece, in
// pieces of 997 bytes, byte by byte, and those of 1 MiB also in pieces as those of sections 9.5 and 9.6. The whole suite
// against the server is TestAutobahnSuite of package server.
func TestAutobahnCases(t *testing.T) {
	for _, c := range autobahnCases() {
		t.Run(c.name, func(t *testing.T) {
			input := slices.Concat(c.frames...)
			pieces := []int{len(input), 997}
			if race.Enabled && len(input) > 1<<20 {
				return // a minute of it; without the race detector all are decoded
			}
			if len(input) < 100_000 {
				pieces = append(pieces, 1)
			} else if strings.Contains(c.name, "9.5.1") || strings.Contains(c.name, "9.6.1") {
				pieces = append(pieces, 64, 128, 256, 512, 1024, 2048)
			}
			for _, piece := range pieces {
				if got := decode(slices.Clone(input), piece, testLimits); !slices.Equal(got, c.want) {
					t.Errorf("in pieces of %d bytes: %.200q, want %.200q", piece, got, c.want)
				}
			}
		})
	}
}

// autobahnSizes are how many cases the suite has in each of its sections, but for those of compression (12 and 13).
var autobahnSizes = map[string]int{
	"1.1": 8, "1.2": 8, "2": 11, "3": 7, "4.1": 5, "4.2": 5, "5": 20, "6.1": 3, "6.2": 4, "6.3": 2, "6.4": 4, "6.5": 5, "6.6": 11, "6.7": 4, "6.8": 2, "6.9": 4,
	"6.10": 3, "6.11": 5, "6.12": 8, "6.13": 5, "6.14": 10, "6.15": 1, "6.16": 3, "6.17": 5, "6.18": 5, "6.19": 5, "6.20": 7, "6.21": 8, "6.22": 34, "6.23": 7,
	"7.1": 6, "7.3": 6, "7.5": 1, "7.7": 13, "7.9": 9, "7.13": 2, "9.1": 6, "9.2": 6, "9.3": 9, "9.4": 9, "9.5": 6, "9.6": 6, "9.7": 6, "9.8": 6, "10.1": 1,
}

func TestAutobahnCasesAreComplete(t *testing.T) {
	missing := map[string]bool{"12": true}
	for section, n := range autobahnSizes {
		for i := range n {
			missing[fmt.Sprintf("%s.%d", section, i+1)] = true
		}
	}
	if len(missing) != 301+1 {
		t.Errorf("%d cases, and section 12: the suite has 301", len(missing)-1)
	}
	for _, c := range autobahnCases() {
		for _, number := range c.numbers() {
			if !missing[number] {
				t.Errorf("%s is no case of the suite, or is there twice", number)
			}
			delete(missing, number)
		}
	}
	for number := range missing {
		t.Errorf("%s is missing", number)
	}
}
