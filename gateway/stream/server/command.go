package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
)

// command is what a client sends.
type command struct {
	Op      string        `json:"op"`
	ID      uint32        `json:"id"`
	Topics  string        `json:"topics"`
	Filter  []topics.Term `json:"filter"`
	Policy  string        `json:"policy"`
	FlushMS int64         `json:"flush_ms"`
	Resume  *string       `json:"resume"`
	Last    int           `json:"last"`
	Token   string        `json:"token"`
	// Of publish.
	Topic  string  `json:"topic"`
	Data   rawJSON `json:"data"`
	Base64 *string `json:"base64"`
	Reply  string  `json:"reply"`
	// Replicated: it is stored in the grid.
	Replicated bool `json:"replicated"`
	// Of a subscription of another gateway: its ID.
	Gateway string `json:"gateway"`
}

// reply is what a client is sent, but for messages.
type reply struct {
	Op        string     `json:"op"`
	ID        uint32     `json:"id"`
	Position  string     `json:"position,omitempty"`
	Partition *int       `json:"partition,omitempty"`
	At        string     `json:"at,omitempty"`
	Ranges    []gapRange `json:"ranges,omitempty"`
	User      *gapUser   `json:"user,omitempty"`
	Client    string     `json:"client,omitempty"`
	Topics    []string   `json:"topics,omitempty"`
	Publish   []string   `json:"publish,omitempty"`
	Topic     string     `json:"topic,omitempty"`
	Status    rawJSON    `json:"status,omitempty"`
	Code      string     `json:"code,omitempty"`
	Error     string     `json:"error,omitempty"`
}

type rawJSON = json.RawMessage

type gapRange struct {
	Partition int    `json:"partition"`
	After     string `json:"after"`
	Through   string `json:"through"`
	Count     uint64 `json:"count,omitempty"` // left out: not known
}

// gapUser is messages of clients that are missing.
type gapUser struct {
	Count int `json:"count,omitempty"` // left out: not known
}

func userGap(g *fanout.Gap) *gapUser {
	if g.User == 0 {
		return nil
	}
	return &gapUser{max(g.User, 0)}
}

// errBad is a command that is not valid.
var errBad = errors.New("command")

// codes of errors, for programs.
var codes = []struct {
	err  error
	code string
}{{fanout.ErrLimit, "limit"}, {fanout.ErrLineage, "lineage"}, {fanout.ErrAhead, "ahead"}, {errNotPermitted, "not-permitted"}, {errNoInbox, "gone"}, {errSelf, "self"},
	{ErrNotStored, "not-stored"}, {ErrOutcome, "unknown"}}

var errNotPermitted = errors.New("not permitted")

// command handles a command and answers it.
func (c *conn) command(payload []byte) {
	m, err := c.server.commands.decode(payload)
	if err != nil {
		err = fmt.Errorf("%w is not valid: %w, allowed: one JSON object like {\"op\":\"subscribe\",\"id\":1,\"topics\":\"orders.>\"}", errBad, err)
	} else {
		err = c.execute(m)
	}
	if err != nil {
		c.fail(m.ID, err)
	}
}

// fail answers a command that failed.
func (c *conn) fail(id uint32, err error) {
	r := reply{Op: "error", ID: id, Code: "invalid", Error: err.Error()}
	for _, k := range codes {
		if errors.Is(err, k.err) {
			r.Code = k.code
		}
	}
	c.reply(&r)
	if errors.Is(err, errLogin) {
		c.end(ws.StatusPolicy, "login refused")
	}
}

func (c *conn) execute(m *command) error {
	switch m.Op {
	case "login":
		return c.login(m.Token)
	case "status":
		return c.status(m)
	case "subscribe":
		return c.subscribe(m)
	case "publish":
		return c.publish(m)
	case "inbox":
		return c.inbox(m)
	case "unsubscribe", "position":
		s := c.client.Subscription(m.ID)
		if s == nil {
			return fmt.Errorf("id of %s is %d, allowed: that of a subscription of this connection", m.Op, m.ID)
		}
		r := reply{Op: "position", ID: m.ID, Position: s.Token().String()}
		if m.Op == "unsubscribe" {
			r.Op = "unsubscribed"
			c.client.Unsubscribe(m.ID)
			c.dropInbox(m.ID)
		}
		c.reply(&r)
		return nil
	}
	return fmt.Errorf("op is %.40q, allowed: subscribe, unsubscribe, position, publish, inbox, login, status", m.Op)
}

// wanted is what a command asks for, within the rights of the client.
func (c *conn) wanted(m *command) (w fanout.Subscription, err error) {
	w = fanout.Subscription{Number: m.ID, Last: m.Last, Flush: time.Duration(m.FlushMS) * time.Millisecond}
	if m.FlushMS < 0 || m.FlushMS > fanout.MaxFlush.Milliseconds() {
		return w, fmt.Errorf("flush_ms is %d, allowed: 0 to %d", m.FlushMS, fanout.MaxFlush.Milliseconds())
	}
	if w.Pattern, err = topics.ParsePattern(m.Topics); err != nil {
		return w, err
	}
	if err := c.grant.allows(w.Pattern); err != nil {
		return w, err
	}
	stream, literal := w.Pattern.First()
	if stream == Inbox {
		return w, fmt.Errorf("%w: topics are %.80q, allowed: what the command inbox subscribes to", errNotPermitted, w.Pattern)
	}
	if refuse := c.server.cfg.Refuse; refuse != nil {
		if err := refuse(w.Pattern); err != nil {
			return w, err
		}
	}
	if !literal {
		stream = ""
	}
	if w.Filter, err = topics.ParseFilter(c.server.cfg.Streams[stream], m.Filter); err != nil {
		return w, err
	}
	switch m.Policy {
	case "", "drop":
		w.Policy = fanout.Drop
	case "conflate":
		w.Policy = fanout.Conflate
	case "disconnect":
		w.Policy = fanout.Disconnect
	default:
		return w, fmt.Errorf("policy is %.40q, allowed: drop (the default), conflate, disconnect", m.Policy)
	}
	if m.Resume != nil {
		token, err := fanout.ParseToken(*m.Resume)
		if err != nil {
			return w, err
		}
		w.Resume, w.Hold = &token, true
	}
	return w, nil
}

func (c *conn) subscribe(m *command) error {
	w, err := c.wanted(m)
	if err != nil {
		return err
	}
	if m.Gateway != "" {
		if err := c.relay(m.Gateway, &w); err != nil {
			return err
		}
	}
	position := ""
	if m.Last > 0 { // the end of what comes first, not its start
		position = c.server.hub.Token().String()
	}
	s, err := c.client.Subscribe(w)
	if err != nil {
		return err
	}
	if m.Gateway != "" {
		c.relays(m.Gateway, s)
	}
	if position == "" {
		position = s.Token().String()
	}
	c.reply(&reply{Op: "subscribed", ID: m.ID, Position: position})
	if s.Held() {
		c.server.history(s)
	}
	return nil
}

// statusPattern is StatusTopic.
var statusPattern, _ = topics.ParsePattern(StatusTopic)

func (c *conn) status(m *command) error {
	if err := c.grant.allows(statusPattern); err != nil {
		return err
	}
	if c.server.cfg.Status == nil {
		return fmt.Errorf("%w: this listener has no status", errNotPermitted)
	}
	status := c.server.cfg.Status()
	c.tc.Spend(len(status))
	c.reply(&reply{Op: "status", ID: m.ID, Status: status})
	return nil
}

// Live implements fanout.Outlet.
func (c *conn) Live(number uint32) {
	if c.events != nil {
		c.event("live", "", reply{})
		return
	}
	c.reply(&reply{Op: "live", ID: number})
}

// reply sends a JSON object.
func (c *conn) reply(r *reply) {
	b, err := c.server.replies.encode(r)
	if err != nil { // strings and numbers only
		c.tc.Close(err)
		return
	}
	c.write(ws.AppendFrame(c.buffer(), ws.Text, b))
}

// Gap implements fanout.Outlet.
func (c *conn) Gap(number uint32, g *fanout.Gap) {
	r := reply{Op: "gap", ID: number, User: userGap(g)}
	for _, k := range g.Ranges {
		r.Ranges = append(r.Ranges, gapRange{k.Partition, k.After.String(), k.Through.String(), k.Count})
	}
	if c.events != nil {
		c.events.gap(c, r.Ranges, g)
		return
	}
	c.reply(&r)
}
