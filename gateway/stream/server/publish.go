package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
)

// User is the first token of the topics that clients publish to.
const User = "user"

// Publishing bounds what clients publish. Zero fields take the default.
type Publishing struct {
	Message  int // bytes of data of one message; default 1 MiB
	Messages int // of one client in a second; default 1,000
	Bytes    int // of data of one client in a second; default 4 MiB
	// Messages that are stored in the grid, on their way there at the same time, and their bytes; default 1,024 and 16 MiB,
	// a sixteenth of them of one client.
	Replicated      int
	ReplicatedBytes int
	LargeHeld       int // bytes of messages longer than MaxCommand that are being received; default 64 MiB, an eighth of it for one client
}

// frame is the longest message of a client that may publish: data as base64 within a command.
func (p *Publishing) frame(command int) int {
	return base64.StdEncoding.EncodedLen(p.Message) + command
}

// PublishStats count since the start.
type PublishStats struct {
	Published    uint64 // messages of this server's clients
	Stored       uint64 // messages of this server's clients that the grid has
	Relayed      uint64 // messages of other gateways
	NotPermitted uint64 // refused: the rights of the client,
	OverLimit    uint64 // its rate, or a message that is too long,
	Invalid      uint64 // what is no message,
	NotStored    uint64 // or the grid, of those that are stored; or it has not answered
	LostPeers    uint64 // times when messages of other gateways may have been lost
}

// publish handles the command.
func (c *conn) publish(m *command) error {
	u := userMessage{topic: []byte(m.Topic), reply: []byte(m.Reply), data: m.Data, replicated: m.Replicated}
	switch {
	case (m.Data != nil) == (m.Base64 != nil):
		c.server.stats.Publish.Invalid++
		return errors.New("data and base64: both or none is there, allowed: one of them, data for JSON, base64 for bytes")
	case m.Base64 != nil:
		data, err := base64.StdEncoding.DecodeString(*m.Base64)
		if err != nil {
			c.server.stats.Publish.Invalid++
			return fmt.Errorf("base64 is not valid: %w, allowed: RFC 4648 with padding", err)
		}
		u.data, u.bytes = data, true
	}
	return c.send(m.ID, &u)
}

// tooLong refuses a message longer than a command before it is read, which costs more than its bytes, if the client may not
// publish now.
func (c *conn) tooLong(payload []byte) bool {
	s := c.server
	if len(payload) <= s.cfg.MaxCommand || c.grant == nil {
		return false
	}
	c.tc.Spend(len(payload))
	err := s.paces.of(c.grant.Client, s.loop.Clock().Mono(), &s.cfg.Publishing).allows(c.grant.Client, &s.cfg.Publishing)
	if err == nil {
		return false
	}
	s.stats.Publish.OverLimit++
	c.fail(0, err)
	return true
}

// publishBinary handles a message of a client in the binary form. An error of it is told like that of a command.
func (c *conn) publishBinary(b []byte) {
	id, u, err := parseUser(b)
	switch {
	case err == nil && len(u.from) > 0:
		err = fmt.Errorf("from is %.40q, allowed: none: the gateway knows who publishes", u.from)
	}
	if err != nil {
		c.server.stats.Publish.Invalid++
	} else {
		err = c.send(id, &u)
	}
	if err != nil {
		c.fail(id, err)
	}
}

// send publishes a message if the client may; with an id it is answered.
func (c *conn) send(id uint32, u *userMessage) error {
	s := c.server
	err := c.mayPublish(u)
	if err == nil {
		u.from = []byte(c.grant.Client)
		switch {
		case u.replicated:
			if err = c.replicate(id, u); err == nil {
				return nil // stored answers it
			}
		case isInbox(u.topic):
			err = s.toInbox(u, true)
		default:
			err = s.deliver(u, true)
		}
	}
	s.stats.Publish.count(err)
	if err == nil && id != 0 {
		c.reply(&reply{Op: "published", ID: id})
	}
	return err
}

// mayPublish returns why a client may not publish a message now, or nil: then it counts.
func (c *conn) mayPublish(u *userMessage) error {
	p := &c.server.cfg.Publishing
	if c.grant == nil {
		return c.grant.allows(topics.Pattern{})
	}
	if err := u.check(); err != nil {
		return err
	}
	if !isInbox(u.topic) { // who knows an inbox got it with a request
		if err := c.grant.publishes(u.topic); err != nil {
			return err
		}
	}
	if err := c.server.mayReplicate(u); err != nil {
		return err
	}
	if len(u.reply) > 0 {
		if err := c.owns(u.reply); err != nil {
			return err
		}
	}
	if len(u.data) > p.Message {
		return fmt.Errorf("%w: data of a message has %d bytes, allowed: at most %d", fanout.ErrLimit, len(u.data), p.Message)
	}
	return c.server.paces.take(c.grant.Client, len(u.data), c.server.loop.Clock().Mono(), p)
}

// publishes returns why a client may not publish to a topic, or nil.
func (g *Grant) publishes(topic []byte) error {
	if len(g.Publish) == 0 {
		return fmt.Errorf("%w: topic of publish is %.80q, allowed: none: the client may not publish", errNotPermitted, topic)
	}
	for _, p := range g.Publish {
		if p.Matches(topic) {
			return nil
		}
	}
	return fmt.Errorf("%w: topic of publish is %.80q, allowed: within %s", errNotPermitted, topic, g.Publish)
}

// CheckPublish returns why a client cannot be given the right to publish to a pattern, or nil.
func CheckPublish(p topics.Pattern) error {
	if first, literal := p.First(); !literal || first != User && first != Region || !strings.Contains(p.String(), ".") {
		return fmt.Errorf("publish is %.80q, allowed: patterns within %s.> or, for what is stored, %s.>", p, User, Region)
	}
	return nil
}

// deliver hands a message to those it is for.
func (s *Server) deliver(u *userMessage, here bool) error {
	return s.hub.PublishUser(&fanout.Message{Partition: fanout.NoPartition, Topic: u.topic, Payload: s.payload(u)}, here)
}

// payload is that of a fanout.Message, valid until the next one.
func (s *Server) payload(u *userMessage) []byte {
	if cap(s.envelope) > keepEnvelope {
		s.envelope = nil
	}
	s.envelope = u.append(s.envelope[:0])
	return s.envelope
}

// keepEnvelope bounds the buffer that is kept for the next message.
const keepEnvelope = 64 << 10

// publishes reports whether a client may publish: then its messages may be longer than commands.
func (c *conn) publishes() bool { return c.grant != nil && len(c.grant.Publish) > 0 && c.events == nil }

// receives counts the message of which b is the beginning, if it is longer than a command.
func (c *conn) receives(b []byte) {
	need := c.decoder.Pending(b)
	if need <= c.server.cfg.MaxCommand {
		need = 0
	}
	if err := c.hold(need); err != nil {
		c.end(ws.StatusTryAgain, err.Error())
	}
}

// hold counts so many bytes of long messages that are being received, in place of those before.
func (c *conn) hold(need int) error {
	s := c.server
	if c.sending == nil && need == 0 || c.sends().large == need {
		return nil
	}
	own := c.sending
	name, most := c.grant.Client, s.cfg.Publishing.LargeHeld
	switch of := s.largeOf[name] + need - own.large; {
	case need > own.large && s.large+need-own.large > most && s.large > own.large:
		return fmt.Errorf("%w: long messages that are being received take %d bytes, allowed: %d", fanout.ErrLimit, s.large+need-own.large, most)
	case need > own.large && of > most/8 && of > need:
		return fmt.Errorf("%w: long messages of %.40q that are being received take %d bytes, allowed: %d", fanout.ErrLimit, name, of, most/8)
	case of == 0:
		delete(s.largeOf, name)
	default:
		s.largeOf[name] = of
	}
	s.large += need - own.large
	own.large = need
	return nil
}

// paces are how much each client has published lately, by name.
type paces map[string]*pace

// pace is what a client may publish now: an allowance that fills up to that of a second.
type pace struct {
	messages, bytes float64
	at              int64
}

// maxPaces bounds the clients that are known: beyond it those that are at rest are forgotten.
const maxPaces = 8192

// take counts a message, or returns why there is no allowance for it. A long message may take the allowance below zero.
func (p paces) take(client string, size int, now int64, l *Publishing) error {
	k := p.of(client, now, l)
	if err := k.allows(client, l); err != nil {
		return err
	}
	k.messages--
	k.bytes -= float64(size)
	return nil
}

// of returns what a client may publish now.
func (p paces) of(client string, now int64, l *Publishing) *pace {
	k := p[client]
	if k == nil {
		if len(p) >= maxPaces {
			for name, k := range p {
				if now-k.at > int64(time.Minute) {
					delete(p, name)
				}
			}
		}
		k = &pace{float64(l.Messages), float64(l.Bytes), now}
		p[client] = k
	}
	seconds := float64(now-k.at) / float64(time.Second)
	k.at = now
	k.messages = min(k.messages+seconds*float64(l.Messages), float64(l.Messages))
	k.bytes = min(k.bytes+seconds*float64(l.Bytes), float64(l.Bytes))
	return k
}

// allows returns why a client may not publish now, or nil.
func (k *pace) allows(client string, l *Publishing) error {
	switch {
	case k.messages < 1:
		return fmt.Errorf("%w: messages of %.80q in a second are more than %d, allowed: %d; publish again later", fanout.ErrLimit, client, l.Messages, l.Messages)
	case k.bytes <= 0:
		return fmt.Errorf("%w: bytes published by %.80q in a second are more than %d, allowed: %d; publish again later", fanout.ErrLimit, client, l.Bytes, l.Bytes)
	}
	return nil
}
