package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FixConn is a connection to the primary of a partition for the frames of FIX sessions
// (FixOpen and others of docs/protocol.md), which a gateway makes and reads itself. It takes
// the permission Gateway. One goroutine may use Write while another one uses Next.
type FixConn struct {
	c        *Client
	k        *conn
	writing  sync.Mutex // Write, and the pings of Next
	heardAt  int64      // of Next; nanotime
	pingedAt int64
	used     int // of k.in: what Next returned
}

// OpenFix connects to the primary of a partition, once; lost is the address of a node that
// most likely is not the primary any more, or empty. After a failure the routing table is
// asked for anew, so that the next attempt finds another primary.
func (c *Client) OpenFix(ctx context.Context, p wire.PartitionID, lost string) (*FixConn, error) {
	if err := c.checkPartition(p); err != nil {
		return nil, err
	}
	if lost != "" && c.addressOf(p) == lost {
		look, cancel := context.WithTimeout(ctx, c.attemptTimeout(0))
		c.refresh(look, p, lost) //nolint:errcheck // the attempt shows it
		cancel()
	}
	err := fmt.Errorf("client: %s has no primary", p)
	addr := c.addressOf(p)
	if addr != "" {
		dial, cancel := context.WithTimeout(ctx, c.attemptTimeout(time.Second))
		defer cancel()
		var k *conn
		if k, _, err = c.dialNode(dial, IONet, addr, nil); err == nil {
			k.grow(readerBuffer)
			return &FixConn{c: c, k: k, heardAt: nanotime()}, nil
		}
	}
	if ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, c.attemptTimeout(0))
		defer cancel()
		c.refresh(look, p, addr) //nolint:errcheck // the next attempt shows it
	}
	return nil, err
}

// Address of the node.
func (f *FixConn) Address() string { return f.k.addr }

// Close ends the connection.
func (f *FixConn) Close() error { return f.k.st.Close() }

// Write sends frames.
func (f *FixConn) Write(ctx context.Context, frames []byte) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.k.send(ctx, frames, nanotime()+int64(linkPatience)) // Next notices a node that takes nothing in
}

// Next waits for frames and returns all that are there, one behind the other, valid until its
// next call. A node that is silent is asked whether it is there.
func (f *FixConn) Next(ctx context.Context) ([]byte, error) {
	k := f.k
	k.r += f.used
	f.used = 0
	for {
		n, err := wholeFrames(k.in[k.r:k.w])
		if err != nil {
			return nil, &ProtocolError{Address: k.addr, What: "undecodable bytes", Cause: err}
		}
		if n > 0 {
			f.used = n
			return k.in[k.r:][:n], nil
		}
		now := nanotime()
		got, err := k.st.Read(k.space(), now+int64(tick))
		k.w += got
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case got > 0:
			f.heardAt, f.pingedAt = nanotime(), 0
		case errors.Is(err, errTick):
			if err := f.silent(ctx); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, fmt.Errorf("%s: %w: %w", k.addr, errLost, err)
		}
	}
}

// wholeFrames returns how many bytes the complete frames at the beginning have.
func wholeFrames(b []byte) (n int, err error) {
	for {
		frame, rest, err := wire.Split(b[n:])
		if err != nil || frame == nil {
			return n, err
		}
		n = len(b) - len(rest)
	}
}

// silent is for a node from which nothing comes.
func (f *FixConn) silent(ctx context.Context) error {
	now, patience := nanotime(), int64(max(f.c.cfg.SuspectAfter, 500*time.Millisecond))
	switch {
	case f.pingedAt != 0 && now-f.pingedAt > patience:
		return &silentError{f.k.addr, time.Duration(now - f.heardAt), "the connection is made again"}
	case f.pingedAt == 0 && now-f.heardAt > patience:
		f.pingedAt = now
		if !f.writing.TryLock() { // Write has it, and has to be answered, too
			return nil
		}
		defer f.writing.Unlock()
		return f.k.send(ctx, wire.AppendRequest(nil, wire.TypePing, &wire.Request{ReqID: linkReqID}), now+patience)
	}
	return nil
}
