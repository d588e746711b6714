package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// LinkOptions say which link is opened.
type LinkOptions struct {
	Partition wire.PartitionID
	// Term of the source's site, see Site. A standby refuses one below its own (ErrFenced), and a
	// site that makes its entries itself becomes a standby if it is above its own.
	Term uint64
	// Source is the name of the source's grid.
	Source string
}

// LinkState is what a standby partition holds.
type LinkState struct {
	Stored, Committed Position // ends of its log; Lineage is that of what is stored
	Term              uint64   // of its record
	Window            int      // bytes of entries that may be sent behind Committed
	Entries           int      // number of entries that may be
}

// Link is a connection over which a standby partition gets the entries of its source. One
// goroutine may use Send while another one uses Next.
type Link struct {
	c      *Client
	o      LinkOptions
	conn   *duplex
	opened LinkState
}

const linkReqID = 1

// OpenLink opens a link to the primary of a standby, once: a *RejectError with ErrNotStandby or
// ErrFenced says why it is refused for good, with the term in force in Detail.
func (c *Client) OpenLink(ctx context.Context, o LinkOptions) (*Link, error) {
	if o.Source == "" || len(o.Source) > wire.MaxString {
		return nil, fmt.Errorf("client: LinkOptions.Source has %d bytes, allowed: 1..%d", len(o.Source), wire.MaxString)
	}
	return c.openLink(ctx, o)
}

func (c *Client) openLink(ctx context.Context, o LinkOptions) (*Link, error) {
	if err := c.checkPartition(o.Partition); err != nil {
		return nil, err
	}
	if o.Term > wire.MaxTerm {
		return nil, fmt.Errorf("client: LinkOptions.Term is %d, allowed: at most %d", o.Term, wire.MaxTerm)
	}
	l, err := c.tryLink(ctx, o)
	if err != nil && ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, c.attemptTimeout(0))
		defer cancel()
		c.refresh(look, o.Partition, "") //nolint:errcheck // the next attempt shows it
	}
	return l, err
}

func (c *Client) tryLink(ctx context.Context, o LinkOptions) (*Link, error) {
	addr := c.addressOf(o.Partition)
	if addr == "" {
		return nil, fmt.Errorf("client: %s has no primary", o.Partition)
	}
	dial, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	open := wire.AppendLinkOpen(nil, o.Partition, &wire.LinkOpen{ReqID: linkReqID, Term: o.Term, Source: []byte(o.Source)})
	k, _, err := c.dialNode(dial, IONet, addr, open)
	if err != nil {
		return nil, err
	}
	l := &Link{c: c, o: o, conn: newDuplex(k, max(c.cfg.SuspectAfter, linkSilence), "the link is opened again")}
	frame, err := k.exchange(dial, nil, c.deadline(dial, nanotime()))
	if err == nil {
		l.opened, err = l.state(frame)
	}
	if err != nil {
		l.Close() //nolint:errcheck // it never fails
		return nil, err
	}
	return l, nil
}

// Site is what a partition is in a pair of sites.
type Site struct {
	Standby bool
	Term    uint64
	// Stored and Committed are the ends of a standby's log: once it was demoted Stored is the
	// token for the promotion of the other one.
	Stored, Committed Position
}

// Site asks a partition's primary for its role, with the permission Link.
func (c *Client) Site(ctx context.Context, p wire.PartitionID) (Site, error) {
	l, err := c.openLink(ctx, LinkOptions{Partition: p})
	var reject *RejectError
	switch {
	case err == nil:
		defer l.Close() //nolint:errcheck // it never fails
		s := l.State()
		return Site{Standby: true, Term: s.Term, Stored: s.Stored, Committed: s.Committed}, nil
	case errors.As(err, &reject) && reject.Code == wire.CodeNotStandby:
		return Site{Term: reject.Detail}, nil
	}
	return Site{}, err
}

// State is what the standby held when the link was opened.
func (l *Link) State() LinkState { return l.opened }

// Address of the node that takes the entries.
func (l *Link) Address() string { return l.conn.addr }

// Close ends the link.
func (l *Link) Close() error { return l.conn.st.Close() }

// Send sends entries of the source that follow those sent before: at most wire.MaxLinkEntries
// bytes, as a follower got them, each padded to 8 bytes.
func (l *Link) Send(ctx context.Context, entries []byte) error {
	m := wire.LinkEntries{ReqID: linkReqID, Term: l.o.Term, Entries: entries}
	return l.write(ctx, wire.AppendLinkEntries(make([]byte, 0, wire.LinkEntriesFixed+len(entries)), l.o.Partition, &m))
}

func (l *Link) write(ctx context.Context, frame []byte) error {
	return l.conn.write(ctx, frame)
}

// linkSilence is how long a standby may say nothing before it is asked whether it is there.
const linkSilence = 2 * time.Second

// Next waits for the next state of the standby, until ctx ends.
func (l *Link) Next(ctx context.Context) (LinkState, error) {
	k := l.conn
	for {
		frame, rest, err := wire.Split(k.in[k.r:k.w])
		if err != nil {
			return LinkState{}, &ProtocolError{Address: k.addr, What: "undecodable bytes", Cause: err}
		}
		if frame != nil {
			k.r = k.w - len(rest)
			if wire.FrameType(frame) == wire.TypePong {
				continue
			}
			return l.state(frame)
		}
		if err := k.read(ctx); err != nil {
			return LinkState{}, err
		}
	}
}

// state decodes an answer.
func (l *Link) state(frame []byte) (LinkState, error) {
	addr := l.conn.addr
	switch t := wire.FrameType(frame); t {
	case wire.TypeLinkState:
		var m wire.LinkState
		if err := wire.DecodeLinkState(frame, &m); err != nil {
			return LinkState{}, &ProtocolError{Address: addr, What: "link-state", Cause: err}
		}
		return LinkState{
			Stored:    Position{Seq: m.Seq, Hash: m.Hash, Lineage: m.Lineage},
			Committed: Position{Seq: m.CommitSeq, Hash: m.CommitHash, Lineage: m.Lineage},
			Term:      m.Term, Window: int(m.Window), Entries: int(m.Entries),
		}, nil
	case wire.TypeReject, wire.TypeNotPrimary:
		return LinkState{}, (&caller{client: l.c, addr: addr}).refusal(frame)
	case wire.TypeGoaway:
		_, err := l.conn.checkGoaway(frame)
		return LinkState{}, err
	default:
		return LinkState{}, &ProtocolError{Address: addr, What: fmt.Sprintf("frame type %s was not asked for", t)}
	}
}
