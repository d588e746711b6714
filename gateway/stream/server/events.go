package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
)

// maxEventPartitions bounds the partitions of a hub whose clients may read events: the id of each event has the position of
// all of them, and comes back in the head of a request.
const maxEventPartitions = 256

// retryMS is how long a browser waits before it connects again.
const retryMS = 2000

// events is the state of a connection that reads Server-Sent Events: one subscription, and nothing is read from the client.
// Messages come in the binary encoding and are written as text.
//
// An event's id is the position of all partitions behind it: a client that comes back with it in Last-Event-ID gets what
// follows, of each partition.
type events struct {
	sub     *fanout.Sub
	lineage uint32
	at      []fanout.Position // by partition, what was sent
}

// isEvents reports whether a request is for events.
func (s *Server) isEvents(r *http.Request) bool { return slices.Contains(s.cfg.EventPaths, r.URL.Path) }

// subscribeEvents answers a GET for events. The grant is taken already, or missing.
func (c *conn) subscribeEvents(r *http.Request, granted bool) error {
	s := c.server
	if !granted {
		return refused(http.StatusUnauthorized, "the client is not known, allowed: the header Authorization: Bearer TOKEN, or a certificate")
	}
	m, err := eventsOf(r)
	if err != nil {
		return refused(http.StatusBadRequest, "%v", err)
	}
	w, err := c.wanted(m)
	switch {
	case errors.Is(err, errNotPermitted):
		return refused(http.StatusForbidden, "%v", err)
	case err != nil:
		return refused(http.StatusBadRequest, "%v", err)
	case w.Policy == fanout.Conflate:
		return refused(http.StatusBadRequest, "policy is conflate, allowed: drop (the default), disconnect: the position of an event would not be that of all before it")
	}
	c.register(binaryEncoding)
	sub, err := c.client.Subscribe(w)
	if err != nil {
		c.client.Close()
		c.closing = true
	}
	switch {
	case errors.Is(err, fanout.ErrAhead): // a browser tries again after an answer that ends, not after a refusal
		c.write(c.eventsHead(r))
		c.event("end", "", reply{Code: "ahead", Error: err.Error()})
		c.tc.CloseAfterFlush(err)
		return nil
	case errors.Is(err, fanout.ErrLineage):
		return refused(http.StatusConflict, "%v", err)
	case errors.Is(err, fanout.ErrLimit):
		return refused(http.StatusTooManyRequests, "%v", err)
	case err != nil:
		return refused(http.StatusBadRequest, "%v", err)
	}
	c.write(c.eventsHead(r))
	token := sub.Token()
	c.events = &events{sub: sub, lineage: token.Lineage, at: make([]fanout.Position, len(token.At))}
	for i := range token.At {
		c.events.at[i] = token.At[i].At
	}
	c.event("subscribed", c.events.id(), reply{Position: token.String()})
	if sub.Held() {
		s.history(sub)
	}
	return nil
}

// eventsOf is the command of a query: topics, filter (as in the command), policy, flush_ms, last, resume. A browser that
// connects again sends Last-Event-ID, and the same query as before.
func eventsOf(r *http.Request) (*command, error) {
	q := r.URL.Query()
	m := &command{Topics: q.Get("topics"), Policy: q.Get("policy")}
	for name, values := range q {
		if !slices.Contains([]string{"topics", "filter", "policy", "flush_ms", "last", "resume"}, name) || len(values) > 1 {
			return nil, fmt.Errorf("query has %.40q %d times, allowed: topics, filter, policy, flush_ms, last, resume, each once", name, len(values))
		}
	}
	if text := q.Get("filter"); text != "" {
		if err := json.Unmarshal([]byte(text), &m.Filter); err != nil {
			return nil, fmt.Errorf("filter is not valid: %w, allowed: [{\"field\":\"account\",\"equal\":\"A17\"}]", err)
		}
	}
	for _, n := range []struct {
		name string
		to   func(int)
	}{{"flush_ms", func(v int) { m.FlushMS = int64(v) }}, {"last", func(v int) { m.Last = v }}} {
		if text := q.Get(n.name); text != "" {
			v, err := strconv.Atoi(text)
			if err != nil {
				return nil, fmt.Errorf("%s is %.20q, allowed: a number", n.name, text)
			}
			n.to(v)
		}
	}
	if text := q.Get("resume"); text != "" {
		m.Resume = &text
	}
	if text := r.Header.Get("Last-Event-Id"); text != "" {
		m.Resume, m.Last = &text, 0
	}
	return m, nil
}

func (c *conn) eventsHead(r *http.Request) []byte {
	b := append(c.buffer(), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\n"...)
	if origin := r.Header.Get("Origin"); origin != "" { // it was checked
		b = append(append(append(b, "Access-Control-Allow-Origin: "...), origin...), "\r\nAccess-Control-Allow-Credentials: true\r\nVary: Origin\r\n"...)
	}
	return fmt.Appendf(b, "\r\nretry: %d\n\n", retryMS)
}

// id is the position of all partitions.
func (e *events) id() string {
	t := fanout.Token{Lineage: e.lineage, At: make([]fanout.PartitionPosition, len(e.at))}
	for p := range e.at {
		t.At[p] = fanout.PartitionPosition{Partition: p, At: e.at[p]}
	}
	return t.String()
}

// event writes an event that is no message.
func (c *conn) event(name, id string, r reply) {
	data, err := json.Marshal(struct {
		Position string     `json:"position,omitempty"`
		Ranges   []gapRange `json:"ranges,omitempty"`
		User     *gapUser   `json:"user,omitempty"`
		Code     string     `json:"code,omitempty"`
		Error    string     `json:"error,omitempty"`
	}{r.Position, r.Ranges, r.User, r.Code, r.Error})
	if err != nil { // strings and numbers only
		c.tc.Close(err)
		return
	}
	b := c.buffer()
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	c.write(fmt.Appendf(b, "event: %s\ndata: %s\n\n", name, data))
}

// message writes a message, which is a frame of the binary encoding.
func (e *events) message(c *conn, frame []byte) {
	m := frame[frameHeader(frame):]
	if m[0] == binUser {
		e.user(c, m)
		return
	}
	p, at := int(binary.BigEndian.Uint32(m[5:])), fanout.Position{Seq: binary.BigEndian.Uint64(m[9:]), Index: binary.BigEndian.Uint32(m[17:])}
	topic := m[23:][:binary.BigEndian.Uint16(m[21:])]
	payload := m[23+len(topic):]
	if e.at[p].Before(at) {
		e.at[p] = at
	}
	b := append(c.buffer(), "id: "...)
	b = append(append(b, e.id()...), "\ndata: {\"partition\":"...)
	b = append(strconv.AppendInt(b, int64(p), 10), `,"at":"`...)
	b = append(append(append(appendPosition(b, at), `","topic":"`...), topic...), `","data":`...)
	c.write(append(appendLine(b, payload), "}\n\n"...))
}

// appendLine appends JSON in one line: a line break, which is space between its values, would end the event.
func appendLine(b, payload []byte) []byte {
	start := len(b)
	b = append(b, payload...)
	if bytes.ContainsAny(payload, "\r\n") {
		for i := start; i < len(b); i++ {
			if b[i] == '\r' || b[i] == '\n' {
				b[i] = ' '
			}
		}
	}
	return b
}

// user writes a message of a client, which has no position: the id is that of the event before.
func (e *events) user(c *conn, m []byte) {
	_, u, _ := parseUser(m) // the server wrote it
	b := append(append(c.buffer(), "id: "...), e.id()...)
	b = append(append(append(b, "\ndata: {\"topic\":\""...), u.topic...), '"')
	c.write(append(appendLine(b, u.appendJSON(nil)), "}\n\n"...))
}

// frameHeader is how long the header of a frame of a server is.
func frameHeader(frame []byte) int {
	switch frame[1] & 0x7f {
	case 126:
		return 4
	case 127:
		return 10
	}
	return 2
}

// gap writes a gap; what it has is passed over when the client comes back.
func (e *events) gap(c *conn, ranges []gapRange, g *fanout.Gap) {
	for _, k := range g.Ranges {
		if e.at[k.Partition].Before(k.Through) {
			e.at[k.Partition] = k.Through
		}
	}
	c.event("gap", e.id(), reply{Ranges: ranges, User: userGap(g)})
}

// alive writes an id without an event: it keeps proxies from closing the connection, and a client that comes back after
// hours without a message need not have the log read for it.
func (e *events) alive(c *conn) {
	for _, p := range e.sub.Token().At {
		if e.at[p.Partition].Before(p.At) {
			e.at[p.Partition] = p.At
		}
	}
	c.write(append(append(append(c.buffer(), "id: "...), e.id()...), "\n\n"...))
}

// eventPaths are the defaults of Config.EventPaths.
var eventPaths = []string{"/events"}

// binaryEncoding is the index of Binary in encodings.
const binaryEncoding = 1

var errEventsFull = fmt.Errorf("the grid has more than %d partitions, allowed for events: at most that; use the WebSocket", maxEventPartitions)

// eventsRequest checks what is not about the client.
func (c *conn) eventsRequest(r *http.Request) error {
	switch s := c.server; {
	case r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) || r.Host == "":
		return refused(http.StatusMethodNotAllowed, "request is %.20s with %.20s, allowed: GET with HTTP/1.1 and Host", r.Method, r.Proto)
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return refused(http.StatusBadRequest, "the request has a body, allowed: none")
	case s.cfg.Hub.Partitions > maxEventPartitions:
		return refused(http.StatusNotImplemented, "%v", errEventsFull)
	case strings.ContainsAny(r.Header.Get("Origin"), "\r\n"):
		return refused(http.StatusBadRequest, "Origin has a line break")
	default:
		return s.terms.Origin(r)
	}
}
