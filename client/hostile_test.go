package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// hostileServer answers every frame it gets with what reply says, after a
// handshake that reply may also spoil. nil closes the connection.
func hostileServer(t *testing.T, reply func(c *fakeConn, frame []byte) []byte) string {
	g := newFakeGrid(t, 1)
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		out := reply(c, frame)
		if out == nil {
			c.Close()
		}
		c.Write(out)
		return true
	})
	return g.primary.ln.Addr().String()
}

func raw(s string) func(*fakeConn, []byte) []byte {
	return func(*fakeConn, []byte) []byte { return []byte(s) }
}

func TestDialHostileServer(t *testing.T) {
	welcome := func(m wire.Welcome) func(*fakeConn, []byte) []byte {
		return func(*fakeConn, []byte) []byte { return wire.AppendWelcome(nil, &m) }
	}
	table := func(m wire.Table) func(*fakeConn, []byte) []byte {
		return func(c *fakeConn, frame []byte) []byte {
			if wire.FrameType(frame) == wire.TypeHello {
				return c.answer(c.node.grid, frame)
			}
			var request wire.Request
			wire.DecodeRequest(frame, wire.TypeTableRequest, &request)
			m.ReqID = request.ReqID
			return wire.AppendTable(nil, &m)
		}
	}
	for name, tc := range map[string]struct {
		reply func(*fakeConn, []byte) []byte
		want  string
	}{
		"garbage":         {raw("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7"), "frame: length is 4244504319"},
		"web server":      {raw("HTTP/1.1 400 Bad Request\r\n\r\n"), "frame: length is"},
		"length 0":        {raw("\x00\x00\x00\x00\x02\x00\x00\x00"), "length is 0"},
		"length 4 GiB":    {raw("\xff\xff\xff\xff\x02\x00\x00\x00"), "length is 4294967295, allowed: 8..1048576"},
		"closes":          {func(*fakeConn, []byte) []byte { return nil }, "EOF"},
		"empty welcome":   {raw("\x08\x00\x00\x00\x02\x00\x00\x00"), "Welcome: length is 8"},
		"version 99":      {welcome(wire.Welcome{Version: 99, Grid: []byte("fake")}), fmt.Sprintf("version is 99, allowed: %d..%d", wire.MinVersion, wire.Version)},
		"another grid":    {welcome(wire.Welcome{Version: wire.Version, Grid: []byte("prod\x1b[2J")}), `grid "prod?[2J", wanted: "fake"`},
		"goaway":          {raw(string(wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayLimit, Text: []byte("too many connections")}))), "too many connections"},
		"a peer's frame":  {raw("\x08\x00\x00\x00\x40\x00\x00\x00"), "Welcome"},
		"table of none":   {table(wire.Table{}), "partitions is 0, allowed: 1..1024"},
		"table, too many": {table(wire.Table{Partitions: 1025}), "partitions is 1025, allowed: 1..1024"},
		"table, no parts": {table(wire.Table{Partitions: 2}), "knows 0 of the grid's 2 partitions"},
		"table, no such":  {table(wire.Table{Partitions: 2, Parts: []wire.TablePart{{Partition: 2, Primary: wire.NoPrimary}}}), "partition is 2, allowed: below partitions"},
		"silence":         {func(*fakeConn, []byte) []byte { return []byte{} }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := hostileServer(t, tc.reply)
			var err error
			for limit := 300 * time.Millisecond; limit < 5*time.Minute; limit *= 4 { // a busy machine may take longer to answer
				if _, err = Dial(t.Context(), Config{Endpoints: []string{addr}, Grid: "fake", DialTimeout: limit}); err == nil || strings.Contains(err.Error(), tc.want) {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, ErrUnavailable) {
				t.Fatalf("error %v, want one that says %q", err, tc.want)
			}
			t.Log(err)
		})
	}
}

// TestSessionHostileServer: one Submit in flight against a node that breaks the
// protocol. It must end with an unknown outcome whose text says what was wrong,
// and reconnects must be paced, not a hot loop.
func TestSessionHostileServer(t *testing.T) {
	ack := func(change func(*wire.Ack)) func(*fakeConn, wire.Submit) []byte {
		return func(_ *fakeConn, m wire.Submit) []byte {
			a := wire.Ack{ClientSeq: m.ClientSeq, Seq: 10, Epoch: 1, Slot: m.Slot, Copies: 1}
			change(&a)
			return wire.AppendAck(nil, testPartition, &a)
		}
	}
	text := func(s string) func(*fakeConn, wire.Submit) []byte {
		return func(*fakeConn, wire.Submit) []byte { return []byte(s) }
	}
	for name, tc := range map[string]struct {
		reply func(*fakeConn, wire.Submit) []byte
		want  string
	}{
		"garbage":           {text("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7"), "undecodable bytes"},
		"closes":            {func(*fakeConn, wire.Submit) []byte { return nil }, "EOF"},
		"ack cut short":     {text("\x09\x00\x00\x00\x21\x00\x00\x00\x00"), "Ack: length is 9"},
		"ack of the future": {ack(func(a *wire.Ack) { a.ClientSeq = 1 << 63 }), "ack is for order 9223372036854775808, allowed: one without an answer (1..1)"},
		"ack of order 0":    {ack(func(a *wire.Ack) { a.ClientSeq = 0 }), "ack is for order 0"},
		"ack of another":    {ack(func(a *wire.Ack) { a.Slot = 99 }), "session slot 99, allowed: 1"},
		"ack with seq 0":    {ack(func(a *wire.Ack) { a.Seq = 0 }), "seq 0, allowed: more than 0"},
		"reject of another": {func(_ *fakeConn, m wire.Submit) []byte {
			return wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: 77, Code: wire.CodeBadFIX, ForType: wire.TypeSubmit})
		}, "reject is for order 77"},
		"reject of a read": {func(_ *fakeConn, m wire.Submit) []byte {
			return wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: m.ClientSeq, Code: wire.CodeBadFIX, ForType: wire.TypeGet})
		}, "reject is for a Get"},
		"a peer's frame":  {text("\x08\x00\x00\x00\x40\x00\x00\x00"), "frame type Prepare on a session"},
		"an unknown type": {text("\x08\x00\x00\x00\xee\x00\x00\x00"), "frame type 0xee on a session"},
		"goaway":          {text(string(wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayProtocol, Text: []byte("you\x07")}))), "goaway 1): you?"},
		"redirect to itself": {func(c *fakeConn, m wire.Submit) []byte {
			return wire.AppendNotPrimary(nil, testPartition, &wire.NotPrimary{RequestID: m.ClientSeq, Epoch: 9, ForType: wire.TypeSubmit, Address: []byte(c.node.ln.Addr().String())})
		}, "is not the primary at epoch 9"},
		"redirect to nowhere": {func(c *fakeConn, m wire.Submit) []byte {
			return wire.AppendNotPrimary(nil, testPartition, &wire.NotPrimary{RequestID: m.ClientSeq, Epoch: 9, ForType: wire.TypeSubmit, Address: []byte("not an address")})
		}, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 1)
			var connects atomic.Int64
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				switch wire.FrameType(frame) {
				case wire.TypeHello:
					connects.Add(1)
				case wire.TypeSubmit:
					var m wire.Submit
					wire.DecodeSubmit(frame, &m)
					if out := tc.reply(c, m); out != nil {
						c.Write(out)
					} else {
						c.Close()
					}
					return true
				}
				return false
			})
			s := openTest(t, g.dial(t, func(c *Config) { c.RequestTimeout = 150 * time.Millisecond }))
			_, err := s.Submit(t.Context(), testOrder(1))
			if !errors.Is(err, ErrUnknownOutcome) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want an unknown outcome that says %q", err, tc.want)
			}
			t.Log(err)
			// A pause is at least half of 1 ms and of an eighth of the outage so far: 150 ms allow
			// some 60 attempts. A hot loop makes thousands.
			if n := connects.Load(); n > 200 {
				t.Errorf("%d connections within 150 ms", n)
			}
		})
	}
}

func TestViolationsAreCountedAndSurvived(t *testing.T) {
	for name, spoil := range map[string]func(a *wire.Ack) []wire.Ack{
		"duplicate ack": func(a *wire.Ack) []wire.Ack { return []wire.Ack{*a, *a} },
		"gap": func(a *wire.Ack) []wire.Ack {
			b := *a
			b.ClientSeq++
			return []wire.Ack{b}
		},
		"seq goes back": func(a *wire.Ack) []wire.Ack {
			b := *a
			b.Seq = 1
			return []wire.Ack{b}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t))
			if _, err := s.Submit(t.Context(), testOrder(0)); err != nil {
				t.Fatal(err)
			}
			// Two orders in flight, the first one's ack is corrupted once.
			var spoilt atomic.Bool
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				var m wire.Submit
				if wire.FrameType(frame) != wire.TypeSubmit || wire.DecodeSubmit(frame, &m) != nil || m.ClientSeq < 3 || spoilt.Load() {
					return wire.FrameType(frame) == wire.TypeSubmit && !spoilt.Load() && func() bool { dropAnswers(c, frame); return true }()
				}
				spoilt.Store(true)
				g.mu.Lock()
				c.answer(g, frame)
				seq := c.session.applied[2]
				g.mu.Unlock()
				for _, a := range spoil(&wire.Ack{ClientSeq: 2, Seq: seq, Epoch: 1, Slot: m.Slot, Copies: 1}) {
					c.Write(wire.AppendAck(nil, testPartition, &a))
				}
				return true
			})
			done := make(chan error, 2)
			for i := 1; i < 3; i++ {
				if err := s.SubmitAsync(testOrder(i), func(_ Receipt, err error) { done <- err }); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			checkOnce(t, g, 3)
			if st := s.Stats(); st.Violations != 1 || st.Connects != 2 || (st.Gaps == 1) != (name == "gap") {
				t.Fatalf("stats %+v", st)
			}
		})
	}
}

func TestSlowAndHalfServers(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		t.Run("bytes drip", func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t, io))
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				if wire.FrameType(frame) != wire.TypeSubmit {
					return false
				}
				g.mu.Lock()
				out := c.answer(g, frame)
				g.mu.Unlock()
				for i := range out {
					c.Write(out[i : i+1])
					time.Sleep(time.Millisecond)
				}
				return true
			})
			for i := range 3 {
				if _, err := s.Submit(t.Context(), testOrder(i)); err != nil {
					t.Fatal(err)
				}
			}
		})
		t.Run("closes mid-frame", func(t *testing.T) {
			g := newFakeGrid(t, 1)
			s := openTest(t, g.dial(t, io))
			var once atomic.Bool
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				if wire.FrameType(frame) != wire.TypeSubmit || once.Swap(true) {
					return false
				}
				g.mu.Lock()
				out := c.answer(g, frame)
				g.mu.Unlock()
				c.Write(out[:11])
				c.Close()
				return true
			})
			r, err := s.Submit(t.Context(), testOrder(1))
			if err != nil || !r.Duplicate {
				t.Fatalf("%v %v, want the stored reply", r, err)
			}
		})
		t.Run("never reads", func(t *testing.T) {
			g := newFakeGrid(t, 1)
			g.window = 1024
			s := openTest(t, g.dial(t, io))
			block := make(chan struct{})
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				if wire.FrameType(frame) == wire.TypeSubmit {
					<-block
				}
				return false
			})
			big := append(testOrder(1), make([]byte, 60<<10)...)
			var answered atomic.Int64
			sent := 0
			for ; sent < 1000; sent++ { // 60 MiB: more than any socket buffer
				if err := s.SubmitAsync(big, func(_ Receipt, err error) { answered.Add(1) }); err != nil {
					t.Fatal(err)
				}
				if sent%100 == 99 {
					s.Push()
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := s.Submit(ctx, testOrder(2)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("error %v", err)
			}
			close(block)
			waitFor(t, func() bool { return answered.Load() == int64(sent) })
		})
	})
}

// TestHugeFramesCostAFrame: a node that announces large frames for ever costs one frame of memory,
// not more.
func TestHugeFramesCostAFrame(t *testing.T) {
	g := newFakeGrid(t, 1)
	s := openTest(t, g.dial(t, func(c *Config) { c.RequestTimeout = 500 * time.Millisecond }))
	huge := make([]byte, wire.MaxFrame)
	huge[2], huge[4] = 0x10, byte(wire.TypePong) // length 1 MiB
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) == wire.TypeSubmit {
			for range 100 {
				c.Write(huge)
			}
			return true
		}
		return false
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Submit(t.Context(), testOrder(1)) //nolint:errcheck // it cannot succeed
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("100 MiB of frames made the client allocate %d MiB", grown>>20)
	}
}

var _ net.Error = (*timeoutError)(nil)
