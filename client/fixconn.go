package client

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FixConn is a connection to the primary of a partition for the frames of FIX sessions
// (FixOpen and others of docs/protocol.md), which a gateway makes and reads itself. It takes
// the permission Gateway. One goroutine may use Write while another one uses Next.
type FixConn struct {
	d    *duplex
	used int // of d.in: what Next returned
}

// fixSilence is how long a primary may send nothing before it is asked whether it is there.
const fixSilence = 500 * time.Millisecond

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
			return &FixConn{d: newDuplex(k, max(c.cfg.SuspectAfter, fixSilence), "the connection is made again")}, nil
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
func (f *FixConn) Address() string { return f.d.addr }

// Close ends the connection.
func (f *FixConn) Close() error { return f.d.st.Close() }

// Write sends frames.
func (f *FixConn) Write(ctx context.Context, frames []byte) error {
	return f.d.write(ctx, frames)
}

// Next waits for frames and returns all that are there, one behind the other, valid until its
// next call. A node that is silent is asked whether it is there.
func (f *FixConn) Next(ctx context.Context) ([]byte, error) {
	k := f.d
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
		if err := k.read(ctx); err != nil {
			return nil, err
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
