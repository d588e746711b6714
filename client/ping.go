package client

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Pinger measures the way to a node and back: a connection of its own, over which
// a Ping of the wire protocol is answered by the node's connection loop, without a
// partition, a log or another node. It uses sockets as a Session of the same
// client does. It is for one goroutine.
type Pinger struct {
	c   *Client
	k   *conn
	id  uint64
	out []byte
}

// OpenPinger connects to the primary of a partition.
func (c *Client) OpenPinger(ctx context.Context, partition wire.PartitionID) (*Pinger, error) {
	info, ok := c.partition(partition)
	if !ok || info.Primary.Address == "" {
		return nil, fmt.Errorf("client: ping the primary of %s: %w", partition, ErrUnavailable)
	}
	k, _, err := c.dialNode(ctx, c.cfg.IO, info.Primary.Address, nil)
	if err != nil {
		return nil, err
	}
	return &Pinger{c: c, k: k}, nil
}

// Address of the node, "ip:port".
func (p *Pinger) Address() string { return p.k.addr }

// Ping sends a Ping, 16 bytes, and returns when its answer arrives. After an error the Pinger
// cannot be used again.
func (p *Pinger) Ping(ctx context.Context) error {
	p.id++
	p.out = wire.AppendRequest(p.out[:0], wire.TypePing, &wire.Request{ReqID: p.id})
	frame, err := p.k.exchange(ctx, p.out, p.c.deadline(ctx, nanotime()))
	if err != nil {
		return err
	}
	var m wire.Request
	if err := wire.DecodeRequest(frame, wire.TypePong, &m); err != nil {
		return &ProtocolError{Address: p.k.addr, What: "answer to Ping", Cause: err}
	}
	if m.ReqID != p.id {
		return &ProtocolError{Address: p.k.addr, What: fmt.Sprintf("Pong.reqID is %d, allowed: %d, that of the Ping", m.ReqID, p.id)}
	}
	return nil
}

// Close ends the connection.
func (p *Pinger) Close() error { return p.k.st.Close() }
