package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// dialNode connects to a node and exchanges Hello and Welcome. more is sent right
// behind the Hello, to save a round trip, or when the node has taken the client's
// token; the answer to it is left unread.
func (c *Client) dialNode(ctx context.Context, mode IO, addr string, more []byte) (*conn, string, error) {
	st, err := dialStream(ctx, &c.cfg, mode, addr)
	if err != nil {
		return nil, "", err
	}
	k := newConn(st, addr)
	until := c.deadline(ctx, nanotime())
	hello := wire.AppendHello(nil, &wire.Hello{
		MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient,
		Grid: []byte(c.cfg.Grid), Member: []byte(c.cfg.Name),
	})
	var m wire.Welcome
	behind := more
	if c.cfg.Token == nil {
		hello, behind = append(hello, more...), nil
	}
	frame, err := k.exchange(ctx, hello, until)
	if err == nil {
		err = c.checkWelcome(k, frame, &m)
	}
	if err == nil && c.cfg.Token != nil {
		if err = c.authenticate(ctx, k, until); err == nil {
			err = k.send(ctx, behind, until)
		}
	}
	if err != nil {
		st.Close() //nolint:errcheck // the error that matters is returned
		return nil, "", err
	}
	return k, string(m.Member), nil
}

func (c *Client) checkWelcome(k *conn, frame []byte, m *wire.Welcome) error {
	if err := wire.DecodeWelcome(frame, m); err != nil {
		return &ProtocolError{Address: k.addr, What: "answer to Hello", Cause: err}
	}
	if m.Version < wire.MinVersion || m.Version > wire.Version {
		return &ProtocolError{Address: k.addr, What: fmt.Sprintf("Welcome.version is %d, allowed: %d..%d", m.Version, wire.MinVersion, wire.Version)}
	}
	k.version, k.features = m.Version, wire.FeatureSet(m.Features)
	if c.cfg.Grid != "" && string(m.Grid) != c.cfg.Grid {
		return &GoawayError{Address: k.addr, Code: wire.GoawayGrid, Text: fmt.Sprintf("it is a node of grid %q, wanted: %q", printable(m.Grid), c.cfg.Grid)}
	}
	return nil
}

// exchange writes a request and returns the next frame, on a connection without other users. The
// frame is valid until the next call.
func (k *conn) exchange(ctx context.Context, request []byte, until int64) ([]byte, error) {
	if err := k.send(ctx, request, until); err != nil {
		return nil, err
	}
	for {
		frame, rest, err := wire.Split(k.in[k.r:k.w])
		if err != nil && secure.LooksLikeTLS(k.in[k.r:k.w]) {
			return nil, plainToTLS(k.addr)
		}
		if err != nil {
			return nil, &ProtocolError{Address: k.addr, What: "undecodable bytes", Cause: err}
		}
		if frame != nil {
			k.r = k.w - len(rest)
			return k.checkGoaway(frame)
		}
		n, err := k.st.Read(k.space(), until)
		k.w += n
		if err := keepWaiting(ctx, err, until, k.addr); err != nil {
			return nil, err
		}
	}
}

// send writes on a connection without other users.
func (k *conn) send(ctx context.Context, request []byte, until int64) error {
	for len(request) > 0 {
		n, err := k.st.Write(request)
		request = request[n:]
		if err := keepWaiting(ctx, err, until, k.addr); err != nil {
			return err
		}
	}
	return nil
}

func keepWaiting(ctx context.Context, err error, until int64, addr string) error {
	if errors.Is(err, errTick) {
		if errors.Is(ctx.Err(), context.Canceled) {
			return fmt.Errorf("%s: %w", addr, context.Canceled)
		}
		if nanotime() < until {
			return nil
		}
		return &net.OpError{Op: "wait for an answer", Net: "tcp", Err: fmt.Errorf("%s: %w", addr, context.DeadlineExceeded)}
	}
	return err
}

func (k *conn) checkGoaway(frame []byte) ([]byte, error) {
	if wire.FrameType(frame) != wire.TypeGoaway {
		return frame, nil
	}
	var m wire.Goaway
	if err := wire.DecodeGoaway(frame, &m); err != nil {
		return nil, &ProtocolError{Address: k.addr, What: "goaway", Cause: err}
	}
	if m.Code == wire.GoawayTLS {
		return nil, plainToTLS(k.addr)
	}
	return nil, &GoawayError{Address: k.addr, Code: m.Code, Text: printable(m.Text)}
}

// openSession opens (or opens again) the session's id at addr, on a connection
// of its own: from its answer on, no copy of an order that is still under way on
// an older one can be applied.
func (s *Session) openSession(ctx context.Context, addr string, epoch, attempt uint64) (*conn, string, wire.SessionOpened, error) {
	var m wire.SessionOpened
	leave, err := s.client.gates.enter(ctx, addr)
	if err != nil {
		return nil, "", m, fmt.Errorf("%s: %d sessions are being opened there: %w", addr, openAtOnce, err)
	}
	defer leave()
	if s.reads != 0 {
		k, member, err := s.client.dialNode(ctx, s.io, addr, nil)
		return k, member, m, err
	}
	request := wire.AppendOpenSession(nil, s.partition, &wire.OpenSession{ReqID: 1, IDHi: s.id[0], IDLo: s.id[1], Epoch: epoch, Attempt: attempt})
	if s.client.cfg.OnExecutions != nil {
		request[5] |= wire.FlagExecutions
	}
	k, member, err := s.client.dialNode(ctx, s.io, addr, request)
	if err != nil {
		return nil, "", m, err
	}
	frame, err := k.exchange(ctx, nil, s.client.deadline(ctx, nanotime()))
	if err == nil {
		err = s.checkOpened(k, frame, &m)
	}
	if err != nil {
		k.st.Close() //nolint:errcheck // the error that matters is returned
		return nil, "", m, err
	}
	return k, member, m, nil
}

func (s *Session) checkOpened(k *conn, frame []byte, m *wire.SessionOpened) error {
	switch t := wire.FrameType(frame); t {
	case wire.TypeSessionOpened:
		if err := wire.DecodeSessionOpened(frame, m); err != nil {
			return &ProtocolError{Address: k.addr, What: "session-opened", Cause: err}
		}
		if m.ReqID != 1 || m.Window == 0 {
			return &ProtocolError{Address: k.addr, What: fmt.Sprintf("SessionOpened has reqID %d and window %d, allowed: 1, and 1 or more", m.ReqID, m.Window)}
		}
		return nil
	case wire.TypeNotPrimary:
		var n wire.NotPrimary
		if err := wire.DecodeNotPrimary(frame, &n); err != nil {
			return &ProtocolError{Address: k.addr, What: "not-primary", Cause: err}
		}
		return &notPrimaryError{partition: s.partition, address: k.addr, epoch: n.Epoch, hint: string(n.Address)}
	case wire.TypeReject:
		var r wire.Reject
		if err := wire.DecodeReject(frame, &r); err != nil {
			return &ProtocolError{Address: k.addr, What: "reject", Cause: err}
		}
		return &RejectError{Partition: s.partition, Code: r.Code, Detail: r.Detail, Limit: r.Limit, Text: printable(r.Text), from: k.addr}
	default:
		return &ProtocolError{Address: k.addr, What: fmt.Sprintf("answer to OpenSession is a %s, allowed: SessionOpened, NotPrimary, Reject, Goaway", t)}
	}
}

// deadline is ctx's, or RequestTimeout from now, as monotonic nanoseconds.
func (c *Client) deadline(ctx context.Context, now int64) int64 {
	if d, ok := ctx.Deadline(); ok {
		return nanosOf(d)
	}
	return now + int64(c.cfg.RequestTimeout)
}

// attemptTimeout bounds one attempt to connect: a node that is cut off silently must not use up the
// time in which another takes over.
func (c *Client) attemptTimeout(spent time.Duration) time.Duration {
	return min(max(spent, c.cfg.SuspectAfter, 250*time.Millisecond), c.cfg.DialTimeout)
}
