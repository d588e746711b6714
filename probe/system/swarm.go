package system

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// swarm is many WebSocket clients, read by one thread with epoll. Each is checked: by the positions of what it gets.
type swarm struct {
	ep      int
	clients []*listener
	at      map[int32]*listener // by socket

	bytes    atomic.Int64
	data     int64 // bytes of messages' data, once its thread has ended
	received atomic.Int64
	stop     atomic.Bool
	busy     time.Duration // of its thread, once it has ended
}

// listener is one client.
type listener struct {
	fd       int
	partial  []byte
	last     map[uint64]uint64 // the last position, by subscription and partition
	got      account
	repeated int // positions that are not behind the last one
	told     int // messages that the gateway said it left out

	// inboxes are those of users that it hands each message on to.
	inboxes []inbox

	measured bool
	arrivals []arrival
	// faults for the control: the message to pass over and the one to take twice, counted from 1; 0: none.
	loses, repeats int
}

// inbox is a user's: the last message, and how many there were.
type inbox struct {
	last  [512]byte
	count int
}

// account counts messages, and sums up their places so that one in the place of another is seen.
type account struct {
	count int
	sum   uint64
}

func (a *account) add(partition uint32, seq uint64) {
	x := seq*0x9e3779b97f4a7c15 ^ uint64(partition+1)*0xbf58476d1ce4e5b9
	a.count++
	a.sum += x ^ x>>29
}

func (a *account) join(b account) { a.count, a.sum = a.count+b.count, a.sum+b.sum }

// arrival of a message at a client that is measured.
type arrival struct {
	index int
	at    time.Time
}

// idPrefix begins the ClOrdIDs of orders that are timed; idDigits with the order's number follow.
const (
	idPrefix = "FAN-"
	idDigits = 10
)

// newSwarm connects clients to gateways in turn, each subscribed to the topics that it wants.
func newSwarm(gates []*gateway, clients, flushMs int, wants func(client int) []string) (_ *swarm, err error) {
	s := &swarm{at: map[int32]*listener{}}
	if s.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	for i := range clients {
		at := gates[i%len(gates)]
		l, err := dial(at.Address, at.token, flushMs, wants(i))
		if err == nil {
			err = unix.EpollCtl(s.ep, unix.EPOLL_CTL_ADD, l.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.fd)})
		}
		if err != nil {
			s.close()
			return nil, fmt.Errorf("client %d: %w", i, err)
		}
		s.clients, s.at[int32(l.fd)] = append(s.clients, l), l
	}
	return s, nil
}

func (s *swarm) close() {
	for _, l := range s.clients {
		_ = unix.Close(l.fd) // it is not used any more
	}
	_ = unix.Close(s.ep)
}

// dial connects one client, and waits until all its subscriptions are known.
func dial(addr, token string, flushMs int, wants []string) (*listener, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // the socket is kept by a number of its own
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, "GET /stream HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ordergrid.bin.v1\r\nAuthorization: Bearer %s\r\n\r\n", addr, token)
	for id, topic := range wants {
		out = masked(out, 0x1, fmt.Appendf(nil, `{"op":"subscribe","id":%d,"topics":%q,"flush_ms":%d}`, id, topic, flushMs))
	}
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	var got []byte
	for b := make([]byte, 16<<10); bytes.Count(got, []byte(`"op":"subscribed"`)) < len(wants) || got[len(got)-1] != '}'; {
		n, err := c.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%w behind %.300q", err, got)
		}
		if got = append(got, b[:n]...); bytes.Contains(got, []byte(`"op":"error"`)) {
			return nil, fmt.Errorf("refused: %q", got[max(0, len(got)-300):])
		}
	}
	l := &listener{last: map[uint64]uint64{}}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	// A number of its own, so that the runtime does not wait for it too.
	return l, errors.Join(raw.Control(func(fd uintptr) { l.fd, err = unix.Dup(int(fd)) }), err)
}

// masked appends a frame of a client, with a mask of zeros.
func masked(dst []byte, opcode byte, payload []byte) []byte {
	dst = append(dst, 0x80|opcode)
	if len(payload) < 126 {
		dst = append(dst, 0x80|byte(len(payload)))
	} else {
		dst = binary.BigEndian.AppendUint16(append(dst, 0x80|126), uint16(len(payload)))
	}
	return append(append(dst, 0, 0, 0, 0), payload...)
}

// run reads until stop is set. It is to have a thread of its own.
func (s *swarm) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := threadTime()
	defer func() { s.busy = threadTime() - begun }()
	events, buf := make([]unix.EpollEvent, 256), make([]byte, 256<<10)
	for !s.stop.Load() {
		n, err := unix.EpollWait(s.ep, events, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for i := range max(n, 0) {
			l := s.at[events[i].Fd]
			m, err := unix.Read(l.fd, buf)
			switch {
			case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				return err
			case m == 0:
				return fmt.Errorf("a client was disconnected: %w", io.ErrUnexpectedEOF)
			}
			s.bytes.Add(int64(m))
			if err := s.take(l, buf[:m]); err != nil {
				return err
			}
		}
	}
	return nil
}

func threadTime() time.Duration {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// take reads the frames of what came for a client.
func (s *swarm) take(l *listener, b []byte) error {
	now := time.Now()
	if len(l.partial) > 0 {
		l.partial = append(l.partial, b...)
		b = l.partial
	}
	for {
		opcode, payload, rest, err := frame(b)
		if err != nil {
			return err
		}
		if rest == nil {
			break
		}
		b = rest
		switch opcode {
		case 0x2:
			data, err := l.message(payload, now)
			if err != nil {
				return err
			}
			s.data += int64(data)
			s.received.Add(1)
		case 0x1:
			if err := l.text(payload); err != nil {
				return err
			}
		case 0x9: // a short write would be a broken frame, and the gateway ends the connection
			_, _ = unix.Write(l.fd, masked(nil, 0xa, payload))
		default:
			return fmt.Errorf("a client got opcode %d: %.100q", opcode, payload)
		}
	}
	l.partial = append(l.partial[:0], b...)
	return nil
}

// frame cuts a frame off; rest is nil when it is not whole.
func frame(b []byte) (opcode byte, payload, rest []byte, err error) {
	if len(b) < 4 {
		if len(b) < 2 || int(b[1])+2 > len(b) {
			return 0, nil, nil, nil
		}
	}
	if b[0]&0xf0 != 0x80 || b[1] > 126 {
		return 0, nil, nil, fmt.Errorf("frame begins with %#x, allowed: whole ones of less than 64 KiB", b[:2])
	}
	head, n := 2, int(b[1])
	if n == 126 {
		head, n = 4, int(binary.BigEndian.Uint16(b[2:]))
	}
	if len(b) < head+n {
		return 0, nil, nil, nil
	}
	return b[0] & 0xf, b[head : head+n], b[head+n:], nil
}

// message checks one in ordergrid.bin.v1, and returns how many bytes of data it has.
func (l *listener) message(p []byte, now time.Time) (data int, err error) {
	const fixed = 23
	if len(p) < fixed || p[0] != 1 || len(p) < fixed+int(binary.BigEndian.Uint16(p[fixed-2:])) {
		return 0, fmt.Errorf("a message of %d bytes: %.100q", len(p), p)
	}
	data = len(p) - fixed - int(binary.BigEndian.Uint16(p[fixed-2:]))
	id, partition, seq := binary.BigEndian.Uint32(p[1:]), binary.BigEndian.Uint32(p[5:]), binary.BigEndian.Uint64(p[9:])
	n := l.got.count + l.repeated + 1
	if l.loses > 0 && n == l.loses {
		l.loses = -1
		return data, nil
	}
	l.place(id, partition, seq)
	for i := range l.inboxes {
		copy(l.inboxes[i].last[:], p[len(p)-data:])
		l.inboxes[i].count++
	}
	if n == l.repeats {
		l.place(id, partition, seq)
	}
	if l.measured {
		if _, rest, ok := bytes.Cut(p[len(p)-data:], []byte(`"clOrdID":"`+idPrefix)); ok && len(rest) > idDigits {
			if index, err := strconv.Atoi(string(rest[:idDigits])); err == nil {
				l.arrivals = append(l.arrivals, arrival{index, now})
			}
		}
	}
	return data, nil
}

// place takes the position of a message into account.
func (l *listener) place(id, partition uint32, seq uint64) {
	key := uint64(id)<<32 | uint64(partition)
	if seq <= l.last[key] {
		l.repeated++
		return
	}
	l.last[key] = seq
	l.got.add(partition, seq)
}

// text reads what is no message: of a gap, how many it is.
func (l *listener) text(p []byte) error {
	var m struct {
		Op     string `json:"op"`
		Ranges []struct {
			Count int `json:"count"`
		} `json:"ranges"`
	}
	if err := json.Unmarshal(p, &m); err != nil {
		return err
	}
	if m.Op != "gap" {
		return fmt.Errorf("a client got %.300q", p)
	}
	for _, r := range m.Ranges {
		l.told += max(r.Count, 1)
	}
	return nil
}

// tally of all clients, against what each had to get.
type tally struct {
	expected, received        int
	missing, repeated, others int // others: as many, and not the same ones
	told                      int
}

func (s *swarm) tally(wanted func(client int) account) (t tally) {
	for i, l := range s.clients {
		want := wanted(i)
		t.expected, t.received = t.expected+want.count, t.received+l.got.count
		t.repeated, t.told = t.repeated+l.repeated, t.told+l.told
		switch missing := want.count - l.got.count; {
		case missing != 0:
			t.missing += max(missing, 0)
			t.others += max(-missing, 0)
		case want.sum != l.got.sum:
			t.others++
		}
	}
	return t
}

// spread is how unevenly clients that get the same messages get them: the difference of the largest and the smallest mean
// rank, of what it would be if one were always first and another always last. n is how many messages all of them have.
func spread(of [][]arrival) (share float64, n int) {
	type seen struct {
		client int
		at     time.Time
	}
	by := map[int][]seen{}
	for client, list := range of {
		for _, a := range list {
			by[a.index] = append(by[a.index], seen{client, a.at})
		}
	}
	ranks := make([]float64, len(of))
	for _, list := range by {
		if len(list) != len(of) {
			continue
		}
		n++
		slices.SortStableFunc(list, func(a, b seen) int { return a.at.Compare(b.at) })
		for rank, s := range list {
			ranks[s.client] += float64(rank)
		}
	}
	if n == 0 || len(of) < 2 {
		return 0, 0
	}
	return (slices.Max(ranks) - slices.Min(ranks)) / float64(n) / float64(len(of)-1), n
}
