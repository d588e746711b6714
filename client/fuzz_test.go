package client

import (
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// memStream plays fixed bytes to a session and takes whatever it writes.
type memStream struct {
	data []byte
	step int
}

func (m *memStream) Read(p []byte, _ int64) (int, error) {
	if len(m.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), m.step)], m.data)
	m.data = m.data[n:]
	return n, nil
}

func (m *memStream) Write(p []byte) (int, error) { return len(p), nil }
func (m *memStream) Close() error                { return nil }

// FuzzSessionBytes plays arbitrary bytes to a session with orders in flight.
func FuzzSessionBytes(f *testing.F) {
	ack := wire.AppendAck(nil, 0, &wire.Ack{ClientSeq: 1, Seq: 5, Epoch: 1, Slot: 3, Copies: 2})
	ack2 := wire.AppendAck(nil, 0, &wire.Ack{ClientSeq: 2, Seq: 6, Epoch: 1, Slot: 3, Copies: 2})
	f.Add(append(append([]byte(nil), ack...), ack2...), 7)
	f.Add(append(append([]byte(nil), ack...), ack...), 100)
	f.Add(wire.AppendReject(nil, 0, &wire.Reject{RequestID: 2, Slot: 3, Code: wire.CodeBadFIX, ForType: wire.TypeSubmit, Text: []byte("x")}), 1)
	f.Add(wire.AppendReject(nil, 0, &wire.Reject{RequestID: 1, Slot: 3, Code: wire.CodeSessionUnknown, ForType: wire.TypeSubmit}), 64)
	f.Add(wire.AppendNotPrimary(nil, 0, &wire.NotPrimary{RequestID: 1, Address: []byte("127.0.0.1:1"), ForType: wire.TypeSubmit}), 64)
	f.Add(wire.AppendGoaway(nil, &wire.Goaway{Code: 4, Text: []byte("bye")}), 3)
	f.Add([]byte("\xff\xff\xff\xff\x00"), 2)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		cfg, err := Config{Endpoints: []string{"127.0.0.1:1"}, MaxInFlight: 8}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{cfg: cfg, flights: map[wire.PartitionID]*flight{}, questions: map[string]*question{}, callers: map[string]*caller{}, sessions: map[*Session]struct{}{}}
		c.ctx, c.cancel = context.WithCancel(context.Background())
		defer c.cancel()
		c.table.Store(&table{parts: []PartitionInfo{{Epoch: 1}}})
		s := newSession(c, 0, IONet, 0)
		s.recovering = true // no reconnect: the bytes are all there is
		k := newConn(&memStream{data: data, step: max(1, step)}, "fuzz")
		s.p.mu.Lock()
		s.install(k, "m/1", &wire.SessionOpened{Slot: 3, Generation: 1, Window: 8, Epoch: 1})
		s.p.mu.Unlock()
		outcomes := 0
		for i := range 4 {
			if err := s.SubmitAsync(testOrder(i), func(Receipt, error) { outcomes++ }); err != nil {
				t.Fatal(err)
			}
		}
		// The reader goroutine has the stream; wait until it has seen its end.
		for {
			s.p.mu.Lock()
			s.recovering = true
			gone := s.p.conn == nil
			s.p.mu.Unlock()
			if gone {
				break
			}
			runtime.Gosched()
		}
		s.Close()
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		if len(k.in) > wire.MaxFrame {
			t.Fatalf("read buffer has %d bytes", len(k.in))
		}
		st := s.stats
		if sum := st.Accepted + st.Refused + st.Unknown + st.NotSent; sum != 4 {
			t.Fatalf("4 orders have %d outcomes: %+v", sum, st)
		}
	})
}

// FuzzHandshake plays arbitrary bytes as all answers of a node.
func FuzzHandshake(f *testing.F) {
	welcome := wire.AppendWelcome(nil, &wire.Welcome{Version: wire.Version, MaxFrame: 1 << 20, Window: 8, Grid: []byte("g"), Member: []byte("m/1")})
	f.Add(append(append([]byte(nil), welcome...), wire.AppendSessionOpened(nil, 0, &wire.SessionOpened{ReqID: 1, Slot: 1, Window: 8})...))
	f.Add(append(append([]byte(nil), welcome...), wire.AppendTable(nil, &wire.Table{ReqID: 1, Partitions: 8})...))
	f.Add([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, _ := Config{Endpoints: []string{"127.0.0.1:1"}, Grid: "g"}.withDefaults()
		c := &Client{cfg: cfg}
		k := newConn(&memStream{data: data, step: 1 << 20}, "fuzz")
		frame, err := k.exchange(t.Context(), nil, never)
		if err != nil {
			return
		}
		var w wire.Welcome
		c.checkWelcome(k, frame, &w) //nolint:errcheck // it must not panic
		for {
			frame, err := k.exchange(t.Context(), nil, never)
			if err != nil {
				return
			}
			var m wire.SessionOpened
			newSession(c, 0, IONet, 0).checkOpened(k, frame, &m) //nolint:errcheck // it must not panic
			var tab wire.Table
			if wire.DecodeTable(frame, &tab) == nil {
				if next, err := (&table{}).merge(&tab); err == nil && len(next.parts) > wire.MaxPartitions {
					t.Fatalf("%d partitions", len(next.parts))
				}
			}
			caller := &caller{client: c, calls: map[uint64]*call{1: {w: newWaiter()}}, next: 1}
			caller.onFrame(k, frame) //nolint:errcheck // it must not panic
			caller.refusal(frame)    //nolint:errcheck // it must not panic
			var files wire.SinkFiles
			if wire.DecodeSinkFiles(frame, &files) == nil && len(files.Files) > wire.MaxSinkFiles {
				t.Fatalf("%d files", len(files.Files))
			}
			var reply wire.GetReply
			if request := (wire.Get{By: wire.ByID, Seq: 1}); wire.DecodeGetReply(frame, &reply) == nil && reply.Status == wire.GetFound && checkReply(&request, &reply) == nil {
				(&OrderView{entry: reply.Entry}).Order() // it must not panic
			}
		}
	})
}
