package testgrid

import (
	"fmt"
	"net"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// RawSession is a session whose id and numbers are the test's: a program that keeps them over
// a loss of the grid. The test fails on any other answer than those named.
type RawSession struct {
	Moved bool // the node reported that it is not the primary; no further answer is read
	Open  wire.SessionOpened

	t    *testing.T
	conn net.Conn
	in   []byte
}

// OpenSession opens the session at the node, of partition 0.
func OpenSession(t *testing.T, address string, attempt uint64) *RawSession {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &RawSession{t: t, conn: conn}
	hello := wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, BootID: 77, Grid: []byte("dev"), Member: []byte("test")})
	s.send(wire.AppendOpenSession(hello, 0, &wire.OpenSession{ReqID: 1, IDHi: 4711, IDLo: 17, Attempt: attempt}))
	if f := s.await(wire.TypeSessionOpened); f != nil {
		if err := wire.DecodeSessionOpened(f, &s.Open); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Submit submits the order of a number, the same one each time.
func (s *RawSession) Submit(clientSeq uint64) (m wire.Ack) {
	s.t.Helper()
	s.send(wire.AppendSubmit(nil, 0, &wire.Submit{Slot: s.Open.Slot, Generation: s.Open.Generation, ClientSeq: clientSeq,
		Payload: Order(fmt.Sprintf("SESSION-%d", clientSeq), 305)}))
	if f := s.await(wire.TypeAck); f != nil {
		if err := wire.DecodeAck(f, &m); err != nil {
			s.t.Fatal(err)
		}
	}
	return m
}

func (s *RawSession) send(frames []byte) {
	s.t.Helper()
	if _, err := s.conn.Write(frames); err != nil {
		s.t.Fatal(err)
	}
}

// await returns the next frame, which has to be of this type; nil if the node is not the primary.
func (s *RawSession) await(want wire.Type) []byte {
	s.t.Helper()
	for {
		frame, rest, err := wire.Split(s.in)
		if err != nil {
			s.t.Fatal(err)
		}
		if frame == nil {
			b := make([]byte, 4096)
			n, err := s.conn.Read(b)
			if err != nil {
				s.t.Fatalf("waiting for %s: %v", want, err)
			}
			s.in = append(s.in, b[:n]...)
			continue
		}
		s.in = rest
		switch got := wire.FrameType(frame); got {
		case want:
			return frame
		case wire.TypeNotPrimary:
			s.Moved = true
			return nil
		case wire.TypeReject, wire.TypeGoaway:
			s.t.Fatalf("waiting for %s: got %s: %q", want, got, frame)
		}
	}
}
