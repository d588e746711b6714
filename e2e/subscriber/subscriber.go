// Package subscriber is a client of order-gateway's streams that loses its connection and comes back, for tests: it resumes
// at one gateway or another, and keeps the position of each message.
package subscriber

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Subscriber reads topics by protocol ordergrid.json.v1. A Subscriber without Last begins with what is new.
type Subscriber struct {
	Name, Topics string
	Policy       string              // of the subscription; "": what the gateway has by default
	FlushMs      int                 // of the subscription
	Gateway      func(n int) Gateway // for the nth connection
	Lineage      string
	First        map[int]uint64 // positions when it subscribed first, by partition
	Last         map[int]uint64 // positions it is at
	Got          map[int][]uint64
	Resumed      int   // connections that a gateway let go on from a position
	Fault        error // what a gateway must not send
	// Each is called with each message, once and in the order of its partition; nil: they are counted only.
	Each func(partition int, topic string, data json.RawMessage) error
}

// message is what is read of each one from the server.
type message struct {
	Op, At, Position, Code, Error, Topic string
	Partition                            int
	Ranges, Data                         json.RawMessage
}

// Run reads until done returns true of where it is, ctx is over, or there is a Fault.
func (s *Subscriber) Run(ctx context.Context, done func(last map[int]uint64) bool) {
	if s.Got == nil {
		s.Got = map[int][]uint64{}
	}
	err := Again(ctx, func() bool { return s.Fault != nil || done(s.Last) }, func(n int) error {
		subscribe := fmt.Sprintf(`{"op":"subscribe","id":7,"topics":%q`, s.Topics)
		if s.Policy != "" {
			subscribe += fmt.Sprintf(`,"policy":%q`, s.Policy)
		}
		if s.FlushMs > 0 {
			subscribe += fmt.Sprintf(`,"flush_ms":%d`, s.FlushMs)
		}
		if s.Last != nil {
			subscribe += fmt.Sprintf(`,"resume":%q`, Position(s.Lineage, s.Last))
		}
		return s.Gateway(n).Talk(ctx, []string{subscribe + "}"}, func() bool { return done(s.Last) }, func(b []byte) error {
			var m message
			if s.Fault = json.Unmarshal(b, &m); s.Fault != nil {
				return s.Fault
			}
			return s.take(&m)
		})
	})
	if err != nil && s.Fault == nil {
		s.Fault = fmt.Errorf("it is at %v: %w", s.Last, err)
	}
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
	case m.Op == "subscribed":
		s.Resumed++
	case m.Op == "message":
		seq, err := strconv.ParseUint(m.At, 10, 64)
		if err == nil && seq <= s.Last[m.Partition] {
			err = fmt.Errorf("got entry %d of p%d behind %d", seq, m.Partition, s.Last[m.Partition])
		}
		if s.Fault = err; err != nil {
			return err
		}
		s.Last[m.Partition] = seq
		s.Got[m.Partition] = append(s.Got[m.Partition], seq)
		if s.Each != nil {
			s.Fault = s.Each(m.Partition, m.Topic, m.Data)
			return s.Fault
		}
	case m.Op == "error" && m.Code == "ahead":
		return fmt.Errorf("the gateway is behind: %s", m.Error)
	case m.Op != "welcome":
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
