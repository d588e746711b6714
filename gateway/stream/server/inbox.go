package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// Inbox is the first token of the topics of replies: inbox.GATEWAY.SECRET. A client gets one from its gateway, and is the only
// one that reads it; who knows it, as it came with a request, may reply.
const Inbox = "inbox"

var errNoInbox = errors.New("the inbox is not there: its client has gone, or its gateway is not connected")

// inbox handles the command: it is a subscription to a new topic.
func (c *conn) inbox(m *command) error {
	s := c.server
	if c.grant == nil {
		return c.grant.allows(topics.Pattern{})
	}
	if len(c.grant.Publish) == 0 {
		return fmt.Errorf("%w: the client may not publish, allowed: an inbox for clients that may publish requests", errNotPermitted)
	}
	topic := Inbox + "." + s.id + "." + rand.Text()
	p, err := topics.ParsePattern(topic)
	if err != nil {
		return err
	}
	sub, err := c.client.Subscribe(fanout.Subscription{Number: m.ID, Pattern: p})
	if err != nil {
		return err
	}
	own := c.sends()
	if own.inboxes == nil {
		own.inboxes = map[uint32]string{}
	}
	own.inboxes[m.ID], s.inboxes[topic] = topic, sub
	c.reply(&reply{Op: "inbox", ID: m.ID, Topic: topic})
	return nil
}

// dropInbox forgets that of a subscription, if it is one.
func (c *conn) dropInbox(id uint32) {
	if c.sending != nil {
		delete(c.server.inboxes, c.sending.inboxes[id])
		delete(c.sending.inboxes, id)
	}
}

// owns returns why a topic is not one of the client's inboxes, or nil.
func (c *conn) owns(reply []byte) error {
	if c.sending != nil {
		for _, topic := range c.sending.inboxes {
			if topic == string(reply) {
				return nil
			}
		}
	}
	return fmt.Errorf("reply is %.80q, allowed: a topic that the command inbox of this connection was answered with", reply)
}

func isInbox(topic []byte) bool { return strings.HasPrefix(string(topic), Inbox+".") }

// toInbox hands a reply to the client of an inbox, or to the gateway that has it.
func (s *Server) toInbox(u *userMessage, here bool) error {
	to := s.inboxes[string(u.topic)]
	if gateway, _, _ := strings.Cut(string(u.topic[len(Inbox)+1:]), "."); to == nil && here {
		to = s.relays[gateway]
	}
	if to == nil || to.Gone() {
		return errNoInbox
	}
	return to.Send(&fanout.Message{Partition: fanout.NoPartition, Topic: u.topic, Payload: s.payload(u)})
}
