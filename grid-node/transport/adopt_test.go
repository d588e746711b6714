package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// connected returns both ends of a connection: one for Adopt, with its session over TLS, and the other.
func connected(t *testing.T, kind Kind) (nc net.Conn, session *tlsrecord.Session, peer net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() //nolint:errcheck // nothing is lost
	if nc, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if peer, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	_ = peer.SetDeadline(time.Now().Add(hang))
	if kind != overTLS && kind != netTLS {
		return nc, nil, peer
	}
	cfg := testTLS(t)
	over := tls.Server(peer, cfg.Server())
	done := make(chan error, 1)
	go func() { done <- over.Handshake() }()
	if session, err = tlsrecord.Client(context.Background(), nc, cfg.Client("127.0.0.1")); err != nil {
		t.Fatal(err)
	}
	if err := within(t, done); err != nil {
		t.Fatal(err)
	}
	return nc, session, over
}

// taken reads n bytes of what the peer sent, as the one did that made the connection.
func taken(t *testing.T, nc net.Conn, session *tlsrecord.Session, n int) (received []byte) {
	t.Helper()
	buf := make([]byte, n)
	for len(received) < n {
		k, err := nc.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		if session == nil {
			received = append(received, buf[:k]...)
			continue
		}
		sealed := append(session.Early, buf[:k]...)
		data, rest, err := session.Open(nil, sealed)
		if err != nil {
			t.Fatal(err)
		}
		received, session.Early = append(received, data...), bytes.Clone(rest)
	}
	return received
}

// A connection that was made elsewhere goes on with what was received of it, beside the bounds
// for those that are accepted.
func TestAdopt(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		opened := make(chan any, 1)
		e := &echo{setup: func(c *Conn) {
			if c.Dialled() {
				c.SetMaxInput(1 << 20)
				opened <- c.Tag
			}
		}}
		addr := serve(t, kind, Config{MaxConns: 1, MaxInput: 1 << 10, ReadBuffer: 4 << 10}, e)
		nc, session, peer := connected(t, kind)
		long := frame(strings.Repeat("l", 300_000))
		first, second := frame("first"), frame("second, in two parts")
		sent := append(append(bytes.Clone(first), second[:7]...), second[7:]...)
		if _, err := peer.Write(sent[:len(first)+7]); err != nil {
			t.Fatal(err)
		}
		received := taken(t, nc, session, 5) // of a frame, or more
		if err := e.loop.Adopt(nc, session, received, "tag"); err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, peer, sent[len(first)+7:], len(sent)); !bytes.Equal(got, sent) {
			t.Fatalf("got %q", got)
		}
		if tag := within(t, opened); tag != "tag" {
			t.Errorf("tag %v", tag)
		}
		if got := exchange(t, peer, long, len(long)); !bytes.Equal(got, long) {
			t.Fatal("a long frame differs")
		}
		accepted := dial(t, addr) // the only one
		exchange(t, accepted, frame("x"), 5)
		if s := onLoop(t, e.loop, e.loop.Stats); s.Adopted != 1 || s.Conns != 2 || s.Refused != 0 {
			t.Errorf("%d adopted, %d connections, %d refused", s.Adopted, s.Conns, s.Refused)
		}
		_ = peer.Close()
		if err := within(t, e.closed); err == nil {
			t.Error("OnClose has no reason")
		}
	})
}

// A loop that has ended closes the connection.
func TestAdoptTooLate(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		l, _ := newLoop(t, kind, Config{}, &echo{})
		done := make(chan error, 1)
		go func() { done <- l.Run() }()
		l.Stop()
		if err := within(t, done); err != nil {
			t.Fatal(err)
		}
		nc, session, peer := connected(t, kind)
		if err := l.Adopt(nc, session, nil, nil); err == nil {
			t.Error("no error")
		}
		awaitEnd(t, peer)
	})
}
