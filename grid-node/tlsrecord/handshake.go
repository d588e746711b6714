package tlsrecord

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
)

// Session is a connection after its handshake.
type Session struct {
	*Layer
	// Early are records, or a partial one, received with the end of the handshake.
	Early []byte
	State tls.ConnectionState
}

// Client makes the handshake of the dialling end; when ctx ends it is aborted and nc
// closed.
func Client(ctx context.Context, nc net.Conn, cfg *tls.Config) (*Session, error) {
	return handshake(ctx, nc, cfg, true)
}

// Server makes the handshake of the accepting end. It sends no tickets.
func Server(ctx context.Context, nc net.Conn, cfg *tls.Config) (*Session, error) {
	return handshake(ctx, nc, cfg, false)
}

func handshake(ctx context.Context, nc net.Conn, cfg *tls.Config, isClient bool) (*Session, error) {
	var found secrets
	cfg = found.of(cfg)
	below := &oneRecord{Conn: nc, in: make([]byte, firstBuffer)}
	conn := tls.Server(below, cfg)
	if isClient {
		conn = tls.Client(below, cfg)
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	s := &Session{State: conn.ConnectionState(), Early: below.in[below.r:below.w]}
	var err error
	s.Layer, err = newLayer(s.State.CipherSuite, &found, isClient)
	return s, err
}

func newLayer(id uint16, found *secrets, isClient bool) (*Layer, error) {
	suite, err := suiteOf(id)
	if err != nil {
		return nil, err
	}
	out, in := found.server, found.client
	if isClient {
		out, in = in, out
	}
	l := &Layer{isClient: isClient}
	if l.out, err = newHalf(suite, out); err != nil {
		return nil, err
	}
	l.in, err = newHalf(suite, in)
	return l, err
}

// secrets are the traffic secrets of one connection, as crypto/tls writes them to a key
// log (for tools such as Wireshark): a label, the client's random, the secret.
type secrets struct {
	client, server []byte
	others         io.Writer // KeyLogWriter of the configuration
}

// of returns cfg for one connection, whose secrets are captured in s.
func (s *secrets) of(cfg *tls.Config) *tls.Config {
	s.others = cfg.KeyLogWriter
	cfg = cfg.Clone()
	cfg.MinVersion, cfg.KeyLogWriter = tls.VersionTLS13, s
	// A ticket would be a record that is not counted here, and a resumed session would
	// skip the check of the certificate.
	cfg.SessionTicketsDisabled, cfg.ClientSessionCache = true, nil
	if choose := cfg.GetConfigForClient; choose != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen != nil && err == nil {
				chosen = s.of(chosen)
			}
			return chosen, err
		}
	}
	return cfg
}

// Write implements io.Writer.
func (s *secrets) Write(line []byte) (int, error) {
	if s.others != nil {
		if n, err := s.others.Write(line); err != nil {
			return n, err
		}
	}
	fields := bytes.Fields(line)
	if len(fields) != 3 {
		return 0, fmt.Errorf("key log of %d fields, allowed: 3", len(fields))
	}
	var to *[]byte
	switch string(fields[0]) {
	case "CLIENT_TRAFFIC_SECRET_0":
		to = &s.client
	case "SERVER_TRAFFIC_SECRET_0":
		to = &s.server
	default:
		return len(line), nil
	}
	var err error
	*to, err = hex.DecodeString(string(fields[2]))
	return len(line), err
}

// firstBuffer fits a handshake: buffers of strangers are soon garbage, and the collector
// runs beside orders.
const firstBuffer = 4 << 10

// oneRecord gives a tls.Conn one record at a time, so that it reads nothing beyond the end
// of the handshake.
type oneRecord struct {
	net.Conn
	in   []byte // in[r:w] is received and not given out
	r, w int
	left int // bytes of the present record not given out yet
}

// Read implements net.Conn for the tls.Conn.
func (c *oneRecord) Read(p []byte) (int, error) {
	for c.r == c.w || c.left == 0 && c.w-c.r < header {
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	if c.left == 0 {
		c.left = header + int(binary.BigEndian.Uint16(c.in[c.r+3:]))
	}
	n := copy(p, c.in[c.r:c.r+min(c.left, c.w-c.r)])
	c.r += n
	c.left -= n
	return n, nil
}

// receive reads from the socket, after the bytes that may be left.
func (c *oneRecord) receive() error {
	c.w, c.r = copy(c.in, c.in[c.r:c.w]), 0
	n, err := c.Conn.Read(c.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && c.w > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
