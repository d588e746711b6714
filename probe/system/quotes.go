package system

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
)

// The payload of a message of a client: its index (8 bytes), when it was due (8, nanoseconds since the step began), filler,
// and the index again (8), so that one that is cut short is not taken for whole. Numbers are in network byte order.
const (
	payloadHead, payloadTail = 16, 8
	minPayload               = payloadHead + payloadTail
)

// userPartition is that of messages that are in no log, whose position is their index.
const userPartition = math.MaxUint32

// userFrame begins a message of a client in ordergrid.bin.v1.
const userFrame = 2

// Topics that no client subscribes to: of messages beside the others, and of the one that the gateway answers.
const unwanted, confirming = "user.NONE", "user.LAST"

// noIndex is that of messages that no client wants.
const noIndex = math.MaxInt64 - 1

func appendPayload(dst []byte, index int, due time.Duration, size int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(index))
	dst = binary.BigEndian.AppendUint64(dst, uint64(due))
	for range size - minPayload {
		dst = append(dst, 'x')
	}
	return binary.BigEndian.AppendUint64(dst, uint64(index))
}

func parsePayload(b []byte) (index int, due time.Duration, err error) {
	if len(b) < minPayload || !bytes.Equal(b[:8], b[len(b)-payloadTail:]) || b[0]&0x80 != 0 {
		return 0, 0, fmt.Errorf("a payload of %d bytes does not begin and end with its index: %.100q", len(b), b)
	}
	return int(binary.BigEndian.Uint64(b)), time.Duration(binary.BigEndian.Uint64(b[8:])), nil
}

// appendUser appends a message to be published, of bytes. With an id it is answered.
func appendUser(dst []byte, id uint32, topic string) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, userFrame), id)
	dst = append(binary.BigEndian.AppendUint16(dst, uint16(len(topic))), topic...)
	return append(dst, 1, 0, 0, 0) // bytes; no from, no reply
}

// cutUser reads a message that was published, up to its data.
func cutUser(p []byte) (id uint32, data []byte, err error) {
	at := 7
	if len(p) >= at {
		at += int(binary.BigEndian.Uint16(p[5:])) + 2
	}
	if len(p) >= at {
		at += int(p[at-1]) + 2
	}
	if len(p) >= at {
		at += int(binary.BigEndian.Uint16(p[at-2:]))
	}
	if len(p) < at {
		return 0, nil, fmt.Errorf("a message of a client is cut short: %.100q", p)
	}
	return binary.BigEndian.Uint32(p[1:]), p[at:], nil
}

// maxSaid is about how many bytes of messages that are due at once go in one write.
const maxSaid = 64 << 10

// speaker is a connection that publishes. It answers no pings: a gateway waits longer for that than a step takes.
type speaker struct {
	timetable
	conn  net.Conn
	heard chan error // one: nil when the gateway has answered the message with an id
	out   []byte
	sent  int
	late  []time.Duration // of each message, if timed
	timed bool
}

// speak connects one to a gateway.
func speak(addr, token string) (*speaker, error) {
	c, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return nil, err
	}
	var got []byte
	if err = c.SetDeadline(time.Now().Add(time.Minute)); err == nil {
		_, err = c.Write(request(addr, token))
	}
	for b := make([]byte, 4<<10); err == nil && !bytes.Contains(got, []byte("\r\n\r\n")); {
		n := 0
		n, err = c.Read(b)
		got = append(got, b[:n]...)
	}
	answer, rest, _ := bytes.Cut(got, []byte("\r\n\r\n"))
	if err == nil && !bytes.HasPrefix(answer, []byte("HTTP/1.1 101 ")) {
		err = fmt.Errorf("refused: %.300q", got)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s := &speaker{conn: c, heard: make(chan error, 1)}
	go func() { s.heard <- s.hear(rest) }()
	return s, nil
}

func (s *speaker) close() { _ = s.conn.Close() } // all that matters was confirmed

// hear reads until the gateway answers the message with an id, or refuses any.
func (s *speaker) hear(got []byte) error {
	for b := make([]byte, 4<<10); ; {
		opcode, payload, rest, err := frame(got)
		if err != nil {
			return err
		}
		if rest == nil {
			n, err := s.conn.Read(b)
			if err != nil {
				return err
			}
			got = append(got, b[:n]...)
			continue
		}
		var m struct {
			Op string `json:"op"`
		}
		switch got = rest; {
		case opcode == 0x9:
		case opcode == 0x1 && json.Unmarshal(payload, &m) == nil && m.Op == "published":
			return nil
		default:
			return fmt.Errorf("the gateway says to a client that publishes: %.300s", payload)
		}
	}
}

// say publishes n messages of its timetable, or those that are due until over, if that is set. Those that are due together
// go in one write.
func (s *speaker) say(ctx context.Context, n int, over time.Time, message func(dst []byte, index int) []byte) error {
	defer context.AfterFunc(ctx, s.close)()
	if err := s.conn.SetDeadline(s.due(n).Add(time.Minute)); err != nil {
		return err
	}
	for s.sent < n {
		if early := time.Until(s.due(s.sent)); early > 0 {
			if err := clock.Wait(ctx, early); err != nil {
				return err
			}
		}
		now := time.Now()
		if !over.IsZero() && now.After(over) {
			break
		}
		s.out = s.out[:0]
		for ; s.sent < n && len(s.out) < maxSaid; s.sent++ {
			due := s.due(s.sent)
			if due.After(now) {
				break
			}
			if s.timed {
				s.late = append(s.late, now.Sub(due))
			}
			s.out = message(s.out, s.sent)
		}
		if _, err := s.conn.Write(s.out); err != nil {
			select {
			case heard := <-s.heard: // why the gateway has ended it
				return errors.Join(err, heard)
			default:
				return err
			}
		}
	}
	return nil
}

// confirm waits until the gateway has taken all that was published.
func (s *speaker) confirm() error {
	if _, err := s.conn.Write(masked(nil, 0x2, appendPayload(appendUser(nil, 1, confirming), noIndex, 0, minPayload))); err != nil {
		return err
	}
	return <-s.heard
}

// quotes publishes the messages of a step by one connection, and beside them those that no client wants by another.
func (s *streams) quotes(ctx context.Context, f flood) (_ *sent, err error) {
	var speakers [2]*speaker
	for i := range speakers {
		if speakers[i], err = speak(s.gate.Address, s.gate.publisher); err != nil {
			return nil, fmt.Errorf("client that publishes: %w", err)
		}
		defer speakers[i].close()
	}
	lasts := time.Duration(s.p.MeasureS) * time.Second
	x := &sent{timetable: timetable{time.Now().Add(stepLead), f.preset.Pub}, topics: make([]account, f.preset.Topics)}
	none := make(chan error, 1)
	go func() {
		p := speakers[1]
		p.timetable = timetable{x.begun, max(1, f.discard)}
		body := appendPayload(appendUser(nil, 0, unwanted), noIndex, 0, f.preset.Payload)
		err := p.say(ctx, f.discard*s.p.MeasureS, x.begun.Add(lasts), func(dst []byte, _ int) []byte { return masked(dst, 0x2, body) })
		if err == nil {
			err = p.confirm()
		}
		if f.discard > 0 {
			x.discarded = float64(p.sent) / time.Since(x.begun).Seconds()
		}
		none <- err
	}()
	p := speakers[0]
	p.timetable, p.timed = x.timetable, true
	var body []byte
	err = p.say(ctx, f.preset.Pub*s.p.MeasureS, time.Time{}, func(dst []byte, i int) []byte {
		n, index := f.topicOf(i), f.step*stepIDs+i
		x.topics[n].add(userPartition, uint64(index)+1)
		body = appendPayload(appendUser(body[:0], 0, f.topic(n)), index, x.due(i).Sub(x.begun), f.preset.Payload)
		return masked(dst, 0x2, body)
	})
	x.took, x.late = time.Since(x.begun), p.late
	if err == nil {
		err = p.confirm()
	}
	return x, errors.Join(err, <-none)
}
