package transport

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// failures collects the calls of TLS.OnFailure.
func failures(t *testing.T, cfg *TLS) chan error {
	ch := make(chan error, 1024)
	cfg.OnFailure = func(remote string, err error) {
		if remote == "" {
			t.Error("no remote address")
		}
		ch <- err
	}
	return ch
}

// Both ends know each other's identity.
func TestCertificatesAreThere(t *testing.T) {
	accepted := make(chan *Conn, 1)
	addr := serve(t, overTLS, Config{}, &echo{onOpen: func(c *Conn) { accepted <- c }})
	opened := make(chan *Conn, 1)
	client := &echo{onOpen: func(c *Conn) { opened <- c }}
	serve(t, overTLS, Config{}, client)
	onLoop(t, client.loop, func() *Conn { return client.loop.Dial(addr, nil) })
	for _, c := range []*Conn{within(t, accepted), within(t, opened)} {
		if cert := c.Certificate(); cert == nil || cert.Subject.CommonName != "node" {
			t.Errorf("certificate %v", cert)
		}
	}
}

// One system call writes the output of one wake-up, however many records that is, and the
// input of one call is delivered together.
func TestRecordsShareSystemCalls(t *testing.T) {
	e := &echo{repeat: 8, setup: (*Conn).Urgent}
	addr := serve(t, overTLS, Config{}, e)
	c := dial(t, addr)
	big := frame(strings.Repeat("b", 100_000)) // 7 records in, 49 out
	if got := exchange(t, c, big, 8*len(big)); !bytes.Equal(got, bytes.Repeat(big, 8)) {
		t.Fatal("echo differs")
	}
	s := onLoop(t, e.loop, e.loop.Stats)
	for ; s.Writes == 0; s = onLoop(t, e.loop, e.loop.Stats) {
		time.Sleep(time.Millisecond) // the client has all of it, the loop does not know yet
	}
	if s.Writes > 7 || s.Reads > 7 {
		t.Errorf("%d reads, %d writes for one message of 7 records and one of 49", s.Reads, s.Writes)
	}
}

// Plain text to a TLS port: both sides get an error.
func TestPlainTextToTLS(t *testing.T) {
	cfg := testTLS(t)
	cfg.NotTLS = []byte("this port requires TLS\n")
	failed := failures(t, cfg)
	addr := serve(t, overTLS, Config{TLS: cfg}, &echo{})
	for _, hello := range [][]byte{frame("hello"), []byte("GET / HTTP/1.1\r\n\r\n"), bytes.Repeat([]byte{0}, 100_000), bytes.Repeat([]byte{0xff}, 100_000)} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(hang))
		if _, err := c.Write(hello); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != string(cfg.NotTLS) {
			t.Errorf("%.10q got %q, %v", hello, got, err)
		}
		_ = c.Close()
		if err := within(t, failed); !errors.Is(err, secure.ErrPlain) {
			t.Errorf("%.10q: the loop reports %v", hello, err)
		}
	}
}

// TLS to a plain port: the dialler gets an error.
func TestTLSToPlainText(t *testing.T) {
	plain := &echo{maxBody: 100}
	addr := serve(t, KindNet, Config{}, plain)
	e := &echo{}
	serve(t, overTLS, Config{}, e)
	onLoop(t, e.loop, func() *Conn { return e.loop.Dial(addr, nil) })
	if err := within(t, e.closed); !errors.Is(err, secure.ErrPlain) || !strings.Contains(err.Error(), addr) {
		t.Errorf("closed with %v", err)
	}
}

// A peer without a certificate, or of another authority, is never announced.
func TestStrangersAreNotAnnounced(t *testing.T) {
	cfg := testTLS(t)
	failed := failures(t, cfg)
	e := &echo{onOpen: func(c *Conn) { t.Errorf("%s was announced", c.Remote()) }}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	for name, change := range map[string]func(*tls.Config){
		"no certificate":  func(c *tls.Config) { c.GetClientCertificate = nil },
		"self-signed":     func(c *tls.Config) { c.GetClientCertificate = selfSigned(t) },
		"TLS 1.2 at most": func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(hang))
		own := cfg.Client("127.0.0.1")
		change(own)
		over := tls.Client(c, own)
		_, _ = over.Write(frame("let me in")) // the rejection may show at the first read only
		if n, err := over.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: %d bytes were read", name, n)
		}
		if err := within(t, failed); err == nil {
			t.Errorf("%s: no failure reported", name)
		}
		_ = c.Close()
	}
	if s := onLoop(t, e.loop, e.loop.Stats); s.Accepted != 0 || s.NoTLS != 3 || s.Conns != 0 {
		t.Errorf("stats %+v", s)
	}
}

// A silent or slow peer loses its connection in time; a peer that holds many open keeps no
// other out.
func TestSlowHandshakes(t *testing.T) {
	cfg := testTLS(t)
	cfg.HandshakeTimeout, cfg.MaxHandshakes = 50*time.Millisecond, 1000
	failed := failures(t, cfg)
	addr := serve(t, overTLS, Config{TLS: cfg}, &echo{})
	for _, begin := range [][]byte{nil, {22}, {22, 3, 1, 2}, {22, 3, 1, 2, 0, 1, 0, 1, 252}} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(begin)
		if err := within(t, failed); err == nil || !strings.Contains(err.Error(), "in time") {
			t.Errorf("% x: %v", begin, err)
		}
		_ = c.Close()
	}
}

func TestManyHandshakesKeepNobodyOut(t *testing.T) {
	cfg := testTLS(t)
	cfg.HandshakeTimeout, cfg.MaxHandshakes = time.Hour, 4
	failed := failures(t, cfg)
	e := &echo{}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	for i := range 40 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write([]byte{22, 3, 1, 0})
		if i >= cfg.MaxHandshakes {
			within(t, failed) // the oldest was closed
		}
	}
	exchange(t, dial(t, addr), frame("still served"), 4+len("still served"))
	if n := onLoop(t, e.loop, e.loop.Stats).Conns; n != 1 {
		t.Errorf("%d connections, want the one that is served", n)
	}
}

// selfSigned is a certificate of an unknown authority.
func selfSigned(t *testing.T) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	t.Helper()
	return newIdentity(t, "stranger").Client("").GetClientCertificate
}

// In a transition one port serves both, distinguished by the first bytes, however
// fragmented.
func TestPlainBesideTLS(t *testing.T) {
	cfg := testTLS(t)
	cfg.AcceptPlain = true
	accepted := make(chan *Conn, 8)
	e := &echo{repeat: 1, onOpen: func(c *Conn) { accepted <- c }}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	isTLS := func() bool {
		c := within(t, accepted)
		return onLoop(t, e.loop, c.TLS)
	}
	tooLike := frame(strings.Repeat("x", 786)) // its length, 790, begins as a TLS record's header does: 16 03
	for name, b := range map[string][]byte{"a frame": frame("hello"), "a frame of 790 bytes": tooLike} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(hang))
		for i := range b { // one byte at a time
			if _, err := c.Write(b[i : i+1]); err != nil {
				t.Fatal(err)
			}
			if i < 5 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		got := make([]byte, len(b))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s, plain: %q, %v", name, got, err)
		}
		if isTLS() {
			t.Errorf("%s, plain: taken for TLS", name)
		}
		_ = c.Close()
	}
	if got := exchange(t, dial(t, addr), frame("secret"), len(frame("secret"))); !bytes.Equal(got, frame("secret")) || !isTLS() {
		t.Errorf("TLS: %q", got)
	}
	// A loop in the stage in which others may not have TLS yet dials without.
	plain := testTLS(t)
	plain.DialPlain = true
	opened := make(chan *Conn, 1)
	dialler := &echo{onOpen: func(c *Conn) { c.SetOut(append(c.Out(), frame("hello")...)); opened <- c }}
	serve(t, overTLS, Config{TLS: plain}, dialler)
	onLoop(t, dialler.loop, func() *Conn { return dialler.loop.Dial(addr, nil) })
	if c := within(t, opened); onLoop(t, dialler.loop, c.TLS) || isTLS() {
		t.Error("it was dialled with TLS")
	}
	if s := onLoop(t, e.loop, e.loop.Stats); s.NoTLS != 0 {
		t.Errorf("%d handshakes failed", s.NoTLS)
	}
}
