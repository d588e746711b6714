package fix

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/race"
)

// A run is made of bytes: each step takes an operation and what it needs of them. Frames
// are right, so that the session layer is reached; what is in them is arbitrary.

// steps reads a run's bytes; zero when they have ended.
type steps struct{ b []byte }

func (s *steps) take() byte {
	if len(s.b) == 0 {
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

var fuzzTypes = []string{"D", "0", "1", "2", "3", "4", "5", "A", "F", "G", "H", "q", "8", "j", "E", "*", "AE", ""}

var fuzzTags = []int{7, 16, 36, 123, 43, 122, 97, 11, 55, 54, 60, 38, 40, 44, 112, 141, 108, 98, 789, 115, 128, 78, 79, 80, 354, 355, 95, 96, 58, 49, 56, 52, 34, 999, 5001, -1, 0, 530, 41, 35, 8, 9, 10}

// fuzzTagsT are those of FIX 5.0 SP2.
var fuzzTagsT = append([]int{1128, 1129, 1137, 1018, 1019, 1184, 1185}, fuzzTags...)

var fuzzValues = []string{"1", "0", "Y", "N", "", "2", "3", "20", "x", "100", "10.5", "20261123-14:00:00", "20261123-14:00:00.000", "99999999999999999999", "-1", "18446744073709551615", "BANK", "GRID", "30", "a=b", " "}

// play plays a run and checks after every step what must hold.
func play(t *testing.T, w *world, data []byte) {
	s := steps{data}
	for n := 0; len(s.b) > 0 && n < 2000; n++ {
		in, out := w.store.Next()
		switch op := s.take(); op % 8 {
		case 0, 1, 2, 3:
			w.play(&s, fuzzTypes[int(op>>3)%len(fuzzTypes)])
		case 4: // bytes that are no message
			k := int(s.take())
			raw := s.b[:min(k, len(s.b))]
			s.b = s.b[len(raw):]
			if w.link.Err() == nil {
				w.link.Receive(w.now, bytes.ReplaceAll(raw, []byte("|"), []byte{soh}))
			}
		case 5:
			d := int64(s.take()) * int64(200*time.Millisecond)
			w.now.Wall, w.now.Mono = w.now.Wall+d, w.now.Mono+d
			w.link.Tick(w.now)
		case 6:
			w.session.Report(w.now, &ExecutionReport{ExecID: []byte("e"), ExecType: '0', OrdStatus: '0'})
		case 7:
			w.connect()
			next, _ := w.store.Next()
			w.link.Receive(w.now, w.message(next+uint64(op>>6), "A", "98=0|108=30|"))
		}
		if w.after != nil {
			w.after(s.take())
		}
		w.holds(t, in, out)
	}
}

// play sends one message with arbitrary fields, most of them with the expected number.
func (w *world) play(s *steps, msgType string) {
	next, _ := w.store.Next()
	head := fmt.Sprintf("35=%s|34=%d|49=BANK|52=%s|56=GRID|", msgType, int64(next)+int64(int8(s.take()))/16, w.stamp(0))
	var fields strings.Builder
	tags := fuzzTags
	if w.session.profile.Version == FIXT11 {
		tags = fuzzTagsT
	}
	for k := int(s.take()) % 8; k > 0; k-- {
		fmt.Fprintf(&fields, "%d=%s|", tags[int(s.take())%len(tags)], fuzzValues[int(s.take())%len(fuzzValues)])
	}
	switch s.take() % 4 {
	case 0:
		head += w.order("o")
	case 1:
		head += "7=1|16=0|"
	}
	if w.link.Err() == nil {
		w.link.Receive(w.now, w.sealed(head+fields.String()))
	}
}

// holds checks the state and what was sent in a step that began with these numbers.
func (w *world) holds(t *testing.T, inBefore, outBefore uint64) {
	g, l := &w.session.gap, &w.acceptor.cfg.Limits
	if len(g.held) > l.GapMessages || g.bytes > l.GapBytes {
		t.Fatalf("%d messages of %d bytes are kept behind a gap, allowed: %d, %d", len(g.held), g.bytes, l.GapMessages, l.GapBytes)
	}
	for i := range g.held {
		if i > 0 && g.held[i].seq <= g.held[i-1].seq {
			t.Fatalf("kept messages are not in order: %d after %d", g.held[i].seq, g.held[i-1].seq)
		}
	}
	in, out := w.store.Next()
	reset := false
	next := outBefore
	for _, m := range w.received() {
		seq, _ := strconv.ParseUint(get(m, "34"), 10, 64)
		if err := soundFrame(m); err != nil {
			t.Fatalf("sent what cannot be read: %v: %s", err, m)
		}
		switch {
		case get(m, "35") == "A" && get(m, "141") == "Y":
			reset, next = true, 2
		case get(m, "43") == "Y":
			if seq >= out {
				t.Fatalf("resent number %d, the last is %d: %s", seq, out-1, m)
			}
		case seq < next || seq >= out:
			t.Fatalf("number %d was sent, expected %d to %d: %s", seq, next, out-1, m)
		default:
			next = seq + 1
		}
	}
	if !reset && (in < inBefore || out < outBefore) {
		t.Fatalf("numbers went back: in %d to %d, out %d to %d", inBefore, in, outBefore, out)
	}
}

func get(m, tag string) string {
	_, v, _ := strings.Cut("|"+m, "|"+tag+"=")
	v, _, _ = strings.Cut(v, "|")
	return v
}

func soundFrame(m string) error {
	raw := strings.ReplaceAll(m, "|", "\x01")
	f := nextFrame([]byte(raw), 1<<20)
	switch {
	case f.bad != nil:
		return f.bad
	case f.skip != 0 || len(f.msg) != len(raw):
		return errors.New("it is not one message")
	}
	return nil
}

// seeds are runs that reach different parts.
func seeds() (list [][]byte) {
	list = append(list, []byte{0, 0, 0, 0, 6, 5, 200, 24, 0, 0, 1, 7, 0, 32, 0, 2, 0, 0, 17, 5, 1})
	for i := range uint64(32) {
		list = append(list, random(i, 200))
	}
	return append(list, []byte("\x04\x608=FIX.4.4|9=5|35=0|10=161|8=FIX.4.4|9=500|35=0|34=2|8=FIX|9=|8=FIX.4.4|9=99999999|10=|"))
}

func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 44))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b
}

func fuzzWorld(t testing.TB, v Version) *world {
	w := newWorld(t, Profile{ID: ID{Version: v}, ResendChunk: 3}, Config{Limits: Limits{GapMessages: 8, GapBytes: 2000, Unsent: 16 << 10}})
	w.store = NewMemory(4 << 10)
	w.session.store = w.store
	w.store.Bind(w.session)
	w.logon("")
	return w
}

// FuzzSession plays arbitrary messages, connections and times.
func FuzzSession(f *testing.F) {
	for _, s := range seeds() {
		f.Add(byte(0), s)
	}
	f.Fuzz(func(t *testing.T, version byte, data []byte) {
		play(t, fuzzWorld(t, FIX42+Version(version%3)), data)
	})
}

// FuzzStream sends arbitrary bytes, at once and in pieces: what is answered is the same.
func FuzzStream(f *testing.F) {
	w := fuzzWorld(f, FIX44)
	good := append(w.message(2, "D", w.order("o1")), w.message(3, "1", "112=x|")...)
	f.Add(good, uint16(7))
	f.Add(bytes.ReplaceAll(good, []byte("9=1"), []byte("9=2")), uint16(1))
	f.Add(append([]byte("35=0\x018=FIX"), good...), uint16(3))
	f.Add([]byte("8=FIX.4.4\x019=5\x0135=0\x0110=161\x01"), uint16(2))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		whole, pieces := fuzzWorld(t, FIX44), fuzzWorld(t, FIX44)
		whole.feed(data, len(data))
		pieces.feed(data, 1+int(size)%64)
		if a, b := whole.out.b, pieces.out.b; !bytes.Equal(a, b) {
			t.Fatalf("at once: %q\nin pieces of %d: %q", a, 1+int(size)%64, b)
		}
	})
}

// feed passes bytes as a connection does: what is not consumed comes again.
func (w *world) feed(data []byte, size int) {
	w.out.b = nil
	var held []byte
	for len(data) > 0 && w.link.Err() == nil {
		n := min(size, len(data))
		held = append(held, data[:n]...)
		data = data[n:]
		held = held[w.link.Receive(w.now, held):]
	}
}

// A sample of what the fuzzer does for longer.
func TestSessionSample(t *testing.T) {
	runs := 3000
	if race.Enabled { // ten times as slow
		runs = 500
	}
	sample(t, runs, 1000, func(t *testing.T, seed uint64) { play(t, fuzzWorld(t, FIX42+Version(seed%3)), random(seed, 300)) })
}

// sample plays so many seeds, on all cores. With ORDERGRID_FIX_FUZZ it is as many as that says, new ones each time.
func sample(t *testing.T, runs int, from uint64, one func(t *testing.T, seed uint64)) {
	t.Helper()
	if text := os.Getenv("ORDERGRID_FIX_FUZZ"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("ORDERGRID_FIX_FUZZ is %q, allowed: a number from 1", text)
		}
		runs, from = n, uint64(time.Now().UnixNano())
		t.Logf("seeds from %d", from)
	}
	workers := runtime.GOMAXPROCS(0)
	for k := range workers {
		t.Run(fmt.Sprint("worker", k), func(t *testing.T) {
			t.Parallel()
			seed := from
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			for n := k; n < runs && !t.Failed(); n += workers {
				seed = from + uint64(n)
				one(t, seed)
			}
		})
	}
}
