package server

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
)

// Region is the first token of the topics of entries of regions. A client publishes to one with replicated: then the message
// is an entry of the grid, and published says that it is committed.
const Region = "region"

// Errors of Config.Replicate and what it calls.
var (
	// ErrNotStored means that the message was not stored.
	ErrNotStored = errors.New("not stored")
	// ErrOutcome means that it may have been stored, or may be still.
	ErrOutcome = errors.New("it is not known whether it is stored")
)

// Stored is where a message of a client was stored.
type Stored struct {
	Partition int
	At        fanout.Position
}

// inFlight are messages of clients that are being stored.
type inFlight struct{ messages, bytes int }

// ofOne is the part of Publishing.Replicated and ReplicatedBytes that one client may have.
const ofOne = 16

func isRegion(topic []byte) bool { return strings.HasPrefix(string(topic), Region+".") }

// mayReplicate returns why a message cannot be one that is stored, or one that is not, or nil.
func (s *Server) mayReplicate(u *userMessage) error {
	switch stored := isRegion(u.topic); {
	case stored != u.replicated:
		return fmt.Errorf("replicated is %v and topic %.80q, allowed: replicated with topics of %s.NAME.KEY, and with them only", u.replicated, u.topic, Region)
	case stored && len(u.reply) > 0:
		return fmt.Errorf("reply is %.80q, allowed: none with replicated, since a region answers nothing", u.reply)
	case stored && s.cfg.Replicate == nil:
		return fmt.Errorf("topic of publish is %.80q, allowed: those of clients: this gateway puts nothing into regions", u.topic)
	}
	return nil
}

// replicate has a message stored, and answers it then. Its client has done so much at the same time at most.
func (c *conn) replicate(id uint32, u *userMessage) error {
	s, name, n := c.server, c.grant.Client, len(u.topic)+len(u.data)
	p, of := &s.cfg.Publishing, s.storing[name]
	switch all := s.storingAll; {
	case of.messages >= max(1, p.Replicated/ofOne) || of.messages > 0 && of.bytes+n > p.ReplicatedBytes/ofOne:
		return fmt.Errorf("%w: messages of %.80q that are being stored are %d of %d bytes, allowed: %d and %d; publish again when some are answered", fanout.ErrLimit, name, of.messages, of.bytes, max(1, p.Replicated/ofOne), p.ReplicatedBytes/ofOne)
	case all.messages >= p.Replicated || all.messages > 0 && all.bytes+n > p.ReplicatedBytes:
		return fmt.Errorf("%w: messages of all clients that are being stored are %d of %d bytes, allowed: %d and %d; publish again later", fanout.ErrLimit, all.messages, all.bytes, p.Replicated, p.ReplicatedBytes)
	}
	err := s.cfg.Replicate(bytes.Clone(u.topic), bytes.Clone(u.data), func(at Stored, err error) {
		s.Post(func(*fanout.Hub) {
			s.stores(name, -1, -n)
			c.stored(id, at, err)
		})
	})
	if err == nil {
		s.stores(name, 1, n)
	}
	return err
}

// stores counts what is being stored.
func (s *Server) stores(name string, messages, bytes int) {
	of := s.storing[name]
	of.messages, of.bytes = of.messages+messages, of.bytes+bytes
	if s.storing[name] = of; of.messages == 0 {
		delete(s.storing, name)
	}
	s.storingAll.messages, s.storingAll.bytes = s.storingAll.messages+messages, s.storingAll.bytes+bytes
}

// stored answers a message that was stored, or was not.
func (c *conn) stored(id uint32, at Stored, err error) {
	if n := &c.server.stats.Publish; err == nil {
		n.Stored++
	} else {
		n.count(err)
	}
	if c.ended || c.closing || c.stage == gone {
		return
	}
	if err != nil {
		c.fail(id, err)
	} else if id != 0 {
		c.reply(&reply{Op: "published", ID: id, Partition: &at.Partition, At: at.At.String()})
	}
}

// count counts a message that was published, or refused.
func (n *PublishStats) count(err error) {
	switch {
	case err == nil:
		n.Published++
	case errors.Is(err, errNotPermitted):
		n.NotPermitted++
	case errors.Is(err, fanout.ErrLimit):
		n.OverLimit++
	case errors.Is(err, ErrNotStored), errors.Is(err, ErrOutcome):
		n.NotStored++
	default:
		n.Invalid++
	}
}
