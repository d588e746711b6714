package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/peerkey"
)

// twoEnds are the records of a connection.
func twoEnds(t testing.TB) (a, b *peerkey.Records) {
	t.Helper()
	key := peerkey.New()
	p, proof, err := peerkey.Prove(key, []byte("hello"), []byte("challenge"))
	if err != nil {
		t.Fatal(err)
	}
	answer, b, err := peerkey.Accept([]peerkey.Key{key}, []byte("hello"), []byte("challenge"), proof)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = p.Finish(answer); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// turning is an echo that answers the first frame in plain and all others in records.
type turning struct {
	echo
	records *peerkey.Records
	begun   bool
}

var signal = frame("protect yourself")

func (h *turning) OnFrames(c *Conn, buf []byte) (int, error) {
	if h.begun {
		return h.echo.OnFrames(c, buf)
	}
	if len(buf) < len(signal) {
		return 0, nil
	}
	h.begun = true
	c.SetOut(append(c.Out(), signal...))
	c.Protect(h.records)
	return len(signal), nil
}

// sealed is the client's end.
type sealed struct {
	net.Conn
	r         *peerkey.Records
	raw, data []byte
}

func (c *sealed) Write(p []byte) (int, error) {
	_, err := c.Conn.Write(c.r.Seal(nil, p))
	return len(p), err
}

func (c *sealed) Read(p []byte) (int, error) {
	for len(c.data) == 0 {
		b := make([]byte, 4096)
		n, err := c.Conn.Read(b)
		c.raw = append(c.raw, b[:n]...)
		if err != nil {
			return 0, err
		}
		data, rest, err := c.r.Open(nil, c.raw)
		if err != nil {
			return 0, err
		}
		c.data, c.raw = data, slices.Clone(rest)
	}
	n := copy(p, c.data)
	c.data = c.data[n:]
	return n, nil
}

// forEachPlain runs a case on every implementation without TLS.
func forEachPlain(t *testing.T, f func(t *testing.T, kind Kind)) {
	for _, k := range kinds() {
		if k != overTLS && k != netTLS {
			t.Run(string(k), func(t *testing.T) { f(t, k) })
		}
	}
}

// turn dials a loop that turns and reaches the point where records begin. first is sent
// with the signal, in records already.
func turn(t testing.TB, kind Kind, cfg Config, h *turning, first []byte) *sealed {
	t.Helper()
	if err := TuneScheduler(1); err != nil {
		t.Fatal(err)
	}
	h.maxBody, h.closed = 1<<20, make(chan error, 64)
	a, b := twoEnds(t)
	h.records = b
	l, addr := newLoop(t, kind, cfg, h)
	h.loop = l
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Stop()
		if err := within(t, done); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	c := &sealed{Conn: dial(t, addr), r: a}
	if _, err := c.Conn.Write(append(bytes.Clone(signal), a.Seal(nil, first)...)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(signal))
	if _, err := io.ReadFull(c.Conn, got); err != nil || !bytes.Equal(got, signal) {
		t.Fatalf("%q, %v", got, err)
	}
	return c
}

func TestProtectedEchoes(t *testing.T) {
	forEachPlain(t, func(t *testing.T, kind Kind) {
		first := frame("in the same packet as what began it")
		c := turn(t, kind, Config{ReadBuffer: 4 << 10}, &turning{}, first)
		if got := exchange(t, c, nil, len(first)); !bytes.Equal(got, first) {
			t.Fatalf("%q", got)
		}
		var in []byte
		for i := range 2000 {
			in = append(in, frame(strings.Repeat("x", i%700))...)
		}
		in = append(in, frame(strings.Repeat("long", 50_000))...) // over many reads and records
		for range 3 {
			if got := exchange(t, c, in, len(in)); !bytes.Equal(got, in) {
				t.Fatal("echo differs")
			}
		}
		var wire []byte
		for i := range in[:5000] { // a record a byte, and no packet ends with a record
			wire = c.r.Seal(wire, in[i:i+1])
		}
		go func() {
			for len(wire) > 0 {
				n := min(37, len(wire))
				_, _ = c.Conn.Write(wire[:n])
				wire = wire[n:]
			}
		}()
		whole := 0
		for whole < 5000 && whole+4+int(in[whole])+int(in[whole+1])<<8 <= 5000 {
			whole += 4 + int(in[whole]) + int(in[whole+1])<<8
		}
		if got := exchange(t, c, nil, whole); !bytes.Equal(got, in[:whole]) {
			t.Fatal("echo differs")
		}
	})
}

// The output of one wake-up is one record, and one write.
func TestProtectedWritesAreCoalesced(t *testing.T) {
	forEachPlain(t, func(t *testing.T, kind Kind) {
		h := &turning{}
		c := turn(t, kind, Config{}, h, nil)
		before := onLoop(t, h.loop, h.loop.Stats)
		in := bytes.Repeat(frame("0123456789"), 100)
		exchange(t, c, in, len(in))
		after := onLoop(t, h.loop, h.loop.Stats)
		if n := after.BytesOut - before.BytesOut; n != uint64(len(in)+20) || after.Writes != before.Writes+1 {
			t.Errorf("%d bytes in %d writes, want %d in one", n, after.Writes-before.Writes, len(in)+20)
		}
	})
}

func TestProtectedBackPressureLosesNothing(t *testing.T) {
	forEachPlain(t, func(t *testing.T, kind Kind) {
		h := &turning{echo: echo{repeat: 20}}
		c := turn(t, kind, Config{SoftOut: 32 << 10, HardOut: 64 << 20}, h, nil)
		in := bytes.Repeat(frame(strings.Repeat("p", 1000)), 2000)
		var want int
		go func() { _, _ = c.Write(in) }()
		for limit := time.Now().Add(hang); onLoop(t, h.loop, h.loop.Stats).Paused == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("reading continues")
			}
		}
		one := frame(strings.Repeat("p", 1000))
		got := make([]byte, len(one))
		for range 20 * 2000 {
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, one) {
				t.Fatalf("after %d frames: %v", want, err)
			}
			want++
		}
	})
}

func TestProtectedHalfClose(t *testing.T) {
	forEachPlain(t, func(t *testing.T, kind Kind) {
		h := &turning{}
		c := turn(t, kind, Config{}, h, nil)
		in := bytes.Repeat(frame("last words"), 100)
		if _, err := c.Write(in); err != nil {
			t.Fatal(err)
		}
		closeWrite(c.Conn)
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, in) {
			t.Fatalf("read %d of %d bytes, %v", len(got), len(in), err)
		}
		if err := within(t, h.closed); !errors.Is(err, ErrPeerClosed) {
			t.Fatalf("closed with %v", err)
		}
	})
}

// A flipped bit ends the connection; nothing of the record is handled.
func TestProtectedTampering(t *testing.T) {
	forEachPlain(t, func(t *testing.T, kind Kind) {
		for name, b := range map[string]func(r *peerkey.Records) []byte{
			"a bit":    func(r *peerkey.Records) []byte { b := r.Seal(nil, frame("x")); b[9] ^= 1; return b },
			"repeated": func(r *peerkey.Records) []byte { b := r.Seal(nil, frame("x")); return append(b, b...) },
			"in plain": func(*peerkey.Records) []byte { return frame("0123456789012345678901234567890") },
			"garbage":  func(*peerkey.Records) []byte { return bytes.Repeat([]byte{0xff}, 100) },
		} {
			h := &turning{}
			c := turn(t, kind, Config{}, h, nil)
			if _, err := c.Conn.Write(b(c.r)); err != nil {
				t.Fatal(err)
			}
			if err := within(t, h.closed); !errors.Is(err, peerkey.ErrRecord) {
				t.Errorf("%s: closed with %v", name, err)
			}
			if n := onLoop(t, h.loop, func() int { return h.frames }); n != 0 {
				t.Errorf("%s: %d frames were handled", name, n)
			}
		}
	})
}

func TestProtectedRoundTripAllocatesNothing(t *testing.T) {
	forEachPlain(t, func(t *testing.T, kind Kind) {
		h := &turning{}
		c := turn(t, kind, Config{Tick: time.Hour}, h, nil)
		out := c.r.Seal(nil, frame(strings.Repeat("o", 305)))
		in := make([]byte, len(out))
		// The client seals ahead of the measurement, and opens nothing.
		const warm, trips = 100, 2000
		ready := make([][]byte, warm+trips)
		ready[0] = out
		for i := range ready[1:] {
			ready[1+i] = c.r.Seal(nil, frame(strings.Repeat("o", 305)))
		}
		trip := func(b []byte) {
			if _, err := c.Conn.Write(b); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c.Conn, in); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range ready[:warm] {
			trip(b)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, b := range ready[warm:] {
			trip(b)
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > trips/20 { // the runtime's own few
			t.Fatalf("%d allocations in %d round trips, want 0 a trip", n, trips)
		}
	})
}

// Buffers enlarged by a burst of records are released.
func TestRecordBuffersAreTrimmed(t *testing.T) {
	c := &Conn{guard: &protection{raw: make([]byte, 1, 1<<20)}}
	if c.trimInput(); cap(c.guard.raw) == 0 {
		t.Error("the beginning of a record is lost")
	}
	c.guard.raw = c.guard.raw[:0]
	if c.trimInput(); cap(c.guard.raw) != 0 {
		t.Errorf("%d bytes are kept", cap(c.guard.raw))
	}
}
