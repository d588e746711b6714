package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FixConn is a connection to the primary of a partition for the frames of FIX sessions
// (FixOpen and others of docs/protocol.md), after Hello and Welcome. Its taker writes and reads
// the socket, and closes it; transport.Loop.Adopt does. It takes the permission Gateway.
type FixConn struct {
	Address  string
	Conn     net.Conn
	Session  *tlsrecord.Session // nil: it is a plain one
	Received []byte             // frames that came already, the last one maybe in part
	// Patience is how long the node may send nothing before it is asked whether it is there,
	// by a Ping, and how long it may take to answer that.
	Patience time.Duration
	Features wire.FeatureSet // what the node has said in Welcome that it knows
}

// fixSilence is the least Patience.
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
			var f *FixConn
			if f, err = k.detach(); err == nil {
				f.Patience = max(c.cfg.SuspectAfter, fixSilence)
				return f, nil
			}
		}
	}
	if ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, c.attemptTimeout(0))
		defer cancel()
		c.refresh(look, p, addr) //nolint:errcheck // the next attempt shows it
	}
	return nil, err
}

// detach returns what a connection of IONet consists of.
func (k *conn) detach() (*FixConn, error) {
	f, st := &FixConn{Address: k.addr, Features: k.features}, k.st
	received := [][]byte{k.in[k.r:k.w]}
	err := error(nil)
	if t, ok := st.(*tlsStream); ok {
		received = append(received, t.plain[t.taken:])
		f.Session = &tlsrecord.Session{Layer: t.layer, Early: t.raw[:t.have]}
		st, err = t.st, t.err
	}
	n, ok := st.(*netStream)
	if !ok {
		err = errors.Join(err, fmt.Errorf("client: the connection is a %T, allowed: one of IONet", st))
	}
	if err == nil {
		err = n.conn.SetDeadline(time.Time{})
	}
	if err != nil {
		k.st.Close() //nolint:errcheck // the error that matters is returned
		return nil, fmt.Errorf("%s: %w", k.addr, err)
	}
	f.Conn, f.Received = n.conn, slices.Concat(received...)
	return f, nil
}
