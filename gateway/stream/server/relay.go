package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// A gateway gets what is published at others as a client of each: it subscribes to user.> there and names itself. Such a
// subscription gets what was published there and nothing of third ones, so that nothing goes in circles, and the replies to
// inboxes of that gateway. It takes Grant.Relay.

// GatewayHeader has the server's ID in its answer to another gateway, which so knows one that it reaches by two addresses.
const GatewayHeader = "Ordergrid-Gateway"

// relay makes a subscription that of another gateway.
func (c *conn) relay(gateway string, w *fanout.Subscription) error {
	switch {
	case !c.grant.Relay:
		return fmt.Errorf("%w: gateway is %.40q, allowed: none: the client is no gateway", errNotPermitted, gateway)
	case w.Pattern.String() != User+".>":
		return fmt.Errorf("topics of a gateway are %.80q, allowed: %s.>", w.Pattern, User)
	case gateway == c.server.id:
		return errSelf
	case c.sending != nil && c.sending.gateway != "" && c.sending.gateway != gateway:
		return fmt.Errorf("gateway is %.40q, allowed: %s, as before on this connection", gateway, c.sending.gateway)
	case topics.CheckTopic([]byte(gateway)) != nil || strings.Contains(gateway, "."):
		return fmt.Errorf("gateway is %.80q, allowed: a token of a topic", gateway)
	}
	w.Here = true
	return nil
}

var errSelf = errors.New("gateway is this one, allowed: another")

// relays lists the subscription of another gateway; a new one takes the place of one before.
func (c *conn) relays(gateway string, sub *fanout.Sub) {
	c.server.relays[gateway], c.sends().gateway = sub, gateway
}

// leave forgets what a connection that has ended had of its own to publish.
func (c *conn) leave() {
	own, s := c.sending, c.server
	if own == nil {
		return
	}
	_ = c.hold(0)
	for id := range own.inboxes {
		c.dropInbox(id)
	}
	if sub := s.relays[own.gateway]; sub != nil && sub.Gone() {
		delete(s.relays, own.gateway)
	}
}

// ID names the server among those of a deployment.
func (s *Server) ID() string { return s.id }

// Relay delivers a message that was published at another gateway, in the binary form. It waits until that is done; false:
// the server ended.
func (s *Server) Relay(b []byte) (err error, ok bool) { //nolint:revive // ok is as in Do
	_, u, err := parseUser(b)
	if err == nil {
		err = u.check()
	}
	if err == nil && u.replicated {
		err = errUserMessage
	}
	if err != nil {
		return err, true
	}
	ok = s.Do(func(*fanout.Hub) {
		s.stats.Publish.Relayed++
		switch {
		case isInbox(u.topic):
			_ = s.toInbox(&u, false) // its client may have gone
		case strings.HasPrefix(string(u.topic), User+"."):
			err = s.deliver(&u, false)
		default:
			err = fmt.Errorf("topic of another gateway's message is %.80q, allowed: within %s.> or %s.>", u.topic, User, Inbox)
		}
	})
	return err, ok
}

// RelayLost tells all whom it concerns that messages of another gateway may have been lost.
func (s *Server) RelayLost() {
	if s.losing.Swap(true) {
		return // subscriptions are told soon
	}
	s.Post(func(h *fanout.Hub) {
		s.losing.Store(false)
		s.stats.Publish.LostPeers++
		h.LoseUser()
	})
}
