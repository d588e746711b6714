package traffic

import (
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// scene is traffic with one order to read and no client.
func scene() *Traffic {
	t := &Traffic{cfg: Config{Grid: "g", Partitions: []wire.PartitionID{0}, Reads: 500, Orders: 500, Seed: 1}, run: 7, probers: map[string]*prober{}}
	r := &records{id: fixorder.ID{Run: 7}, node: -1}
	r.add()
	r.noteAcked(0)
	t.streams = []*records{r}
	return t
}

// node listens and passes every connection to serve.
func node(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return ln.Addr().String()
}

// frames calls answer for every frame of a connection; its result is written.
func frames(c net.Conn, answer func(f []byte) []byte) {
	buf := []byte{}
	chunk := make([]byte, 64<<10)
	for {
		f, rest, err := wire.Split(buf)
		if err != nil {
			return
		}
		if f == nil {
			n, err := c.Read(chunk)
			if err != nil {
				return
			}
			buf = append(buf, chunk[:n]...)
			continue
		}
		if out := answer(f); len(out) > 0 {
			if _, err := c.Write(out); err != nil {
				return
			}
		}
		buf = append([]byte(nil), rest...)
	}
}

func watch(t *testing.T, tr *Traffic, address string) *prober {
	t.Helper()
	tr.Watch(history.Node{Pod: "p", Address: address})
	return tr.probers[address]
}

// until polls; the limit only turns a hang into a failure.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not after 20 s: %s", what)
}

// Answers of a node are recorded as they are: an acknowledgement that comes long after the node was
// stopped still counts as one.
func TestProberRecords(t *testing.T) {
	const openBy, submits = 9, 4
	late := make(chan struct{})
	var submitted atomic.Int64
	tr := scene()
	in := watch(t, tr, node(t, func(c net.Conn) {
		frames(c, func(f []byte) []byte {
			switch wire.FrameType(f) {
			case wire.TypeOpenSession:
				var m wire.OpenSession
				if wire.DecodeOpenSession(f, &m) != nil {
					t.Error("no valid OpenSession")
				}
				return wire.AppendSessionOpened(nil, 0, &wire.SessionOpened{ReqID: m.ReqID, Slot: openBy, Generation: 1, Window: 512, Epoch: 3})
			case wire.TypeSubmit:
				var m wire.Submit
				if wire.DecodeSubmit(f, &m) != nil || fixorder.Check(m.Payload) != nil {
					t.Error("no valid order")
				}
				switch submitted.Add(1) {
				case 1:
					<-late
					return wire.AppendAck(nil, 0, &wire.Ack{ClientSeq: m.ClientSeq, Seq: 40, Epoch: 3, Slot: openBy, Copies: 2})
				case 2:
					return wire.AppendReject(nil, 0, &wire.Reject{RequestID: m.ClientSeq, Slot: openBy, Code: wire.CodeOverloaded, ForType: wire.TypeSubmit})
				case 3:
					return wire.AppendNotPrimary(nil, 0, &wire.NotPrimary{RequestID: m.ClientSeq, Slot: openBy, ForType: wire.TypeSubmit})
				}
			case wire.TypeGet:
				var m wire.Get
				if wire.DecodeGet(f, &m) != nil || m.Mode != wire.ModeConfirmed {
					t.Error("no valid confirmed read")
				}
				if m.ReqID%2 == 0 {
					return wire.AppendNotPrimary(nil, 0, &wire.NotPrimary{RequestID: m.ReqID, ForType: wire.TypeGet})
				}
				return wire.AppendGetReply(nil, 0, &wire.GetReply{ReqID: m.ReqID, Epoch: 3, CommitSeq: 17, Status: wire.GetNotFound})
			}
			return nil
		})
	}))
	until(t, "an order is waiting", func() bool { return submitted.Load() >= 1 })
	close(late)
	until(t, "all kinds of answers came", func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return submitted.Load() >= submits && len(in.reads) > 0 && in.refused > 0
	})
	in.stop()
	o := in.streams[0].stream().Orders
	if o[0].Fate != load.Acked || o[0].Seq != 40 || o[0].Epoch != 3 || o[0].T3 <= o[0].T2 {
		t.Errorf("the late acknowledgement: %+v", o[0])
	}
	if o[1].Fate != load.Rejected || o[2].Fate != load.Unknown || o[3].Fate != load.Unknown {
		t.Errorf("refused, sent elsewhere, not answered: %v %v %v", o[1].Fate, o[2].Fate, o[3].Fate)
	}
	if r := in.reads[0]; r.CommitSeq != 17 || r.Epoch != 3 || r.Seq != 0 || r.Return < r.Call {
		t.Errorf("read %+v", r)
	}
}

// Invalid answers of a node end its connection and nothing else.
func TestProberAndHostileNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for name, answer := range map[string][]byte{
		"nothing":             nil,
		"noise":               noise,
		"endless frame":       {0xff, 0xff, 0x0f, 0x00, 1, 0, 0, 0},
		"empty frame":         {0, 0, 0, 0},
		"unasked read":        wire.AppendGetReply(nil, 0, &wire.GetReply{ReqID: 99, Status: wire.GetNotFound}),
		"unasked ack":         wire.AppendAck(nil, 5, &wire.Ack{ClientSeq: 7, Seq: 1, Epoch: 1, Slot: 3}),
		"unasked session":     wire.AppendSessionOpened(nil, 5, &wire.SessionOpened{ReqID: 77, Window: 1}),
		"refusal of nothing":  wire.AppendReject(nil, 9, &wire.Reject{RequestID: 1, ForType: wire.TypeSubmit}),
		"goaway":              wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayDraining}),
		"short entry":         wire.AppendGetReply(nil, 0, &wire.GetReply{ReqID: 1, Status: wire.GetFound, Entry: []byte("short")}),
		"cut in the middle":   wire.AppendGetReply(nil, 0, &wire.GetReply{ReqID: 1, Status: wire.GetNotFound})[:11],
		"length of a reply 0": wire.AppendGetReply(nil, 0, &wire.GetReply{ReqID: 0, Status: wire.GetNotFound}),
	} {
		t.Run(name, func(t *testing.T) {
			tr := scene()
			heard := make(chan struct{}, 16)
			in := watch(t, tr, node(t, func(c net.Conn) {
				_, _ = io.ReadAtLeast(c, make([]byte, 64), 64)
				_, _ = c.Write(answer)
				select {
				case heard <- struct{}{}:
				default:
				}
				if name != "nothing" {
					_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
				}
				_, _ = io.Copy(io.Discard, c)
			}))
			<-heard
			if name != "nothing" {
				<-heard // it reconnected
			}
			in.stop()
			for i, o := range in.streams[0].stream().Orders {
				if o.Fate == load.Acked {
					t.Errorf("order %d counts as acknowledged", i)
				}
			}
		})
	}
}

func TestRecordsGrowAndKeepTheirPlace(t *testing.T) {
	r := &records{node: -1}
	var first *load.Order
	const n = 3*blockSize + 5
	for i := range int64(n) {
		index, o := r.add()
		if index != i {
			t.Fatalf("index %d, want %d", index, i)
		}
		if o.T1 = i; i == 0 {
			first = o
		}
	}
	first.Fate = load.Acked
	s := r.stream()
	if len(s.Orders) != n || s.Orders[0].Fate != load.Acked || s.Orders[n-1].T1 != n-1 || r.at(blockSize).T1 != blockSize {
		t.Fatalf("%d orders, first %+v, last %+v", len(s.Orders), s.Orders[0], s.Orders[n-1])
	}
}
