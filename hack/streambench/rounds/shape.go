// Package rounds is what the servers that streambench compares have in common: what is measured, and the process that
// serves a round, publishes on a schedule, and reads its own CPU and memory.
package rounds

import (
	"flag"
	"fmt"
	"strconv"
	"time"
)

// Shape is what is measured.
type Shape struct {
	Clients, Topics, Each int // each client subscribes to so many topics
	Payload               int
	Rate                  int // messages delivered a second
	Flush, Lasts          time.Duration
}

// Register adds the flags of a shape.
func (s *Shape) Register(set *flag.FlagSet) {
	set.IntVar(&s.Clients, "clients", 1000, "clients")
	set.IntVar(&s.Topics, "topics", 100, "topics, 1 to 100000")
	set.IntVar(&s.Each, "each", 5, "topics of each client")
	set.IntVar(&s.Payload, "payload", 100, "bytes of a message, at least 8")
	set.IntVar(&s.Rate, "rate", 100_000, "messages delivered a second, over all clients")
	set.DurationVar(&s.Flush, "flush", 0, "flush interval of the subscriptions, in whole milliseconds; 0: at once. NATS has none")
	set.DurationVar(&s.Lasts, "duration", 5*time.Second, "of a round")
}

// Args are the flags of the shape.
func (s *Shape) Args() []string {
	return []string{"--clients", strconv.Itoa(s.Clients), "--topics", strconv.Itoa(s.Topics), "--each", strconv.Itoa(s.Each), "--payload", strconv.Itoa(s.Payload),
		"--rate", strconv.Itoa(s.Rate), "--flush", s.Flush.String(), "--duration", s.Lasts.String()}
}

// Check returns why a shape is not valid, or nil.
func (s *Shape) Check() error {
	if s.Clients < 1 || s.Topics < 1 || s.Topics > 100_000 || s.Each < 1 || s.Each > s.Topics || s.Payload < 8 || s.Payload > 32<<10 || s.Rate < 1 || s.Flush%time.Millisecond != 0 {
		return fmt.Errorf("%+v, allowed: see --help", *s)
	}
	return nil
}

// Published is how many messages are published for n delivered.
func (s *Shape) Published(n int) float64 {
	return float64(n) * float64(s.Topics) / float64(s.Clients*s.Each)
}

// TopicOf is the topic of a number, always of the same length.
func TopicOf(n int) string { return fmt.Sprintf("t.%05d", n) }

// Wants are the topics of a client.
func (s *Shape) Wants(client int) []int {
	list := make([]int, s.Each)
	for i := range list {
		list[i] = (client*s.Each + i) % s.Topics
	}
	return list
}

// FrameSize is that of a binary message of the stream server: header, fixed part, topic, payload.
func (s *Shape) FrameSize() int {
	n := 23 + len(TopicOf(0)) + s.Payload
	if n < 126 {
		return 2 + n
	}
	return 4 + n
}
