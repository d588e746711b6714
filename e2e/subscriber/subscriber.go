// Package subscriber is a client of order-gateway's streams that loses its connection and comes back, for tests: it resumes
// at one gateway or another, and keeps the position of each message.
package subscriber

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Subscriber reads topics by protocol ordergrid.json.v1. A Subscriber without Last begins with what is new.
type Subscriber struct {
	Name, Token, Topics string
	// Address of the gateway for the nth connection.
	Address func(n int) string
	Lineage string
	First   map[int]uint64 // positions when it subscribed first, by partition
	Last    map[int]uint64 // positions it is at
	Got     map[int][]uint64
	Resumed int   // connections that went on from a position
	Fault   error // what a gateway must not send
}

// message is what is read of each one from the server.
type message struct {
	Op, At, Position, Code, Error string
	Partition                     int
	Ranges                        json.RawMessage
}

// position is the token to resume from.
func (s *Subscriber) position() string {
	list := []string{}
	for p := range len(s.Last) {
		list = append(list, fmt.Sprintf("p%d:%d", p, s.Last[p]))
	}
	return s.Lineage + "." + strings.Join(list, ",")
}

// Run reads until done returns true of where it is, ctx is over, or there is a Fault.
func (s *Subscriber) Run(ctx context.Context, done func(last map[int]uint64) bool) {
	if s.Got == nil {
		s.Got = map[int][]uint64{}
	}
	for n := 0; s.Fault == nil && !done(s.Last); n++ {
		if ctx.Err() != nil {
			s.Fault = fmt.Errorf("it is at %v: %w", s.Last, ctx.Err())
			return
		}
		if err := s.connection(ctx, s.Address(n), done); err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// connection is one. Its error means that it ended.
func (s *Subscriber) connection(ctx context.Context, address string, done func(map[int]uint64) bool) error {
	dialing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, _, err := websocket.Dial(dialing, "ws://"+address+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}})
	if err != nil {
		return err
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	subscribe := fmt.Sprintf(`{"op":"subscribe","id":7,"topics":%q}`, s.Topics)
	if s.Last != nil {
		subscribe = fmt.Sprintf(`{"op":"subscribe","id":7,"topics":%q,"resume":%q}`, s.Topics, s.position())
		s.Resumed++
	}
	for _, text := range []string{fmt.Sprintf(`{"op":"login","token":%q}`, s.Token), subscribe} {
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return err
		}
	}
	for !done(s.Last) {
		reading, cancel := context.WithTimeout(ctx, time.Second)
		_, b, err := c.Read(reading)
		cancel()
		if err != nil {
			return err
		}
		var m message
		if err := json.Unmarshal(b, &m); err != nil {
			s.Fault = err
			return err
		}
		if err := s.take(&m); err != nil {
			return err
		}
	}
	return nil
}

func (s *Subscriber) take(m *message) error {
	switch {
	case m.Op == "subscribed" && s.Last == nil:
		lineage, at, _ := strings.Cut(m.Position, ".")
		s.Lineage, s.First, s.Last = lineage, map[int]uint64{}, map[int]uint64{}
		for i, part := range strings.Split(at, ",") {
			_, seq, _ := strings.Cut(part, ":")
			n, err := strconv.ParseUint(seq, 10, 64)
			if err != nil {
				s.Fault = err
				return err
			}
			s.First[i], s.Last[i] = n, n
		}
	case m.Op == "message":
		seq, err := strconv.ParseUint(m.At, 10, 64)
		if err != nil || seq <= s.Last[m.Partition] {
			s.Fault = fmt.Errorf("got entry %s of p%d behind %d, %w", m.At, m.Partition, s.Last[m.Partition], err)
			return s.Fault
		}
		s.Last[m.Partition] = seq
		s.Got[m.Partition] = append(s.Got[m.Partition], seq)
	case m.Op == "error" && m.Code == "ahead":
		return fmt.Errorf("the gateway is behind: %s", m.Error)
	case m.Op != "welcome" && m.Op != "subscribed":
		s.Fault = fmt.Errorf("unexpected: %+v %s", m, m.Ranges)
		return s.Fault
	}
	return nil
}

// Missed compares what it got with the entries of each partition that it was to get, and is empty if they are the same.
func (s *Subscriber) Missed(logged map[int][]uint64) (text string) {
	if s.Fault != nil {
		return fmt.Sprintf("%s: %v", s.Name, s.Fault)
	}
	for p, want := range logged {
		for len(want) > 0 && want[0] <= s.First[p] {
			want = want[1:]
		}
		got := s.Got[p]
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				return fmt.Sprintf("%s got %d entries of p%d, the log has %d; the %dth differs", s.Name, len(got), p, len(want), i)
			}
		}
	}
	return ""
}
