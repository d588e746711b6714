package system

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/probe/host"
)

// swarm is many WebSocket clients, read by one thread with epoll. Each is checked: by the positions of what it gets, or by the
// indexes where messages have no position.
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

// run reads until stop is set. It is to have a thread of its own.
func (s *swarm) run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := host.ThreadTime()
	defer func() { s.busy = host.ThreadTime() - begun }()
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
