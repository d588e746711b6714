package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/hack/streambench/rounds"
)

// clients are all clients of a round, read by one epoll loop.
type clients struct {
	shape     *rounds.Shape
	ep        int
	conns     map[int32]*client
	delivered int
	latency   []int64 // of every message, in ns
	take      func(k *client, b []byte)
}

type client struct {
	fd      int
	partial []byte
	head    []byte // of a frame of NATS,
	left    int    // and of its payload
	keep    net.Conn
}

// connect opens and subscribes all clients.
func connect(s *rounds.Shape, kind, addr string) (*clients, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	c := &clients{shape: s, ep: ep, conns: map[int32]*client{}}
	if c.take = c.takeFrames; kind == "nats" {
		c.take = c.takeNATS
	}
	for i := range s.Clients {
		nc, err := net.Dial("tcp", addr)
		var rest []byte
		switch {
		case err != nil:
		case kind == "nats":
			_ = nc.SetDeadline(time.Now().Add(time.Minute))
			rest, err = subscribeNATS(nc, s, i)
		default:
			_ = nc.SetDeadline(time.Now().Add(time.Minute))
			err = subscribe(nc, s, kind, i)
		}
		if err != nil {
			return nil, fmt.Errorf("client %d: %w", i, err)
		}
		raw, err := nc.(*net.TCPConn).SyscallConn()
		if err != nil {
			return nil, err
		}
		k := &client{keep: nc}
		if err := raw.Control(func(fd uintptr) { k.fd = int(fd) }); err != nil {
			return nil, err
		}
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, k.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(k.fd)}); err != nil {
			return nil, err
		}
		c.conns[int32(k.fd)] = k
		if len(rest) > 0 {
			c.take(k, rest)
		}
	}
	return c, nil
}

func (c *clients) close() {
	for _, k := range c.conns {
		_ = k.keep.Close()
	}
	_ = unix.Close(c.ep)
}

// subscribe says to the server what a client wants, and waits until that is known there.
func subscribe(nc net.Conn, s *rounds.Shape, kind string, number int) error {
	if kind == "floor" { // the floor knows by the number
		if _, err := nc.Write(binary.BigEndian.AppendUint32(nil, uint32(number))); err != nil {
			return err
		}
		_, err := io.ReadFull(nc, make([]byte, 1))
		return err
	}
	_, err := io.WriteString(nc, "GET /stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ordergrid.bin.v1\r\n\r\n")
	if err != nil {
		return err
	}
	for i, topic := range s.Wants(number) {
		command := fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":"%s","flush_ms":%d}`, i, rounds.TopicOf(topic), s.Flush.Milliseconds())
		frame := append([]byte{0x81, 0x80 | byte(len(command)), 0, 0, 0, 0}, command...) // masked with zeros, below 126 bytes
		if _, err := nc.Write(frame); err != nil {
			return err
		}
	}
	var got []byte
	for b := make([]byte, 4096); strings.Count(string(got), `"op":"subscribed"`) < s.Each || got[len(got)-1] != '}'; {
		n, err := nc.Read(b)
		if err != nil {
			return fmt.Errorf("%w behind %q", err, got)
		}
		got = append(got, b[:n]...)
	}
	return nil
}

// run reads until the server is done and nothing comes any more.
func (c *clients) run(stop <-chan struct{}) error {
	events, buf := make([]unix.EpollEvent, 256), make([]byte, 256<<10)
	for {
		n, err := unix.EpollWait(c.ep, events, 300)
		if err != nil && err != unix.EINTR {
			return err
		}
		for i := range max(n, 0) {
			k := c.conns[events[i].Fd]
			m, err := unix.Read(k.fd, buf)
			if err == unix.EAGAIN || err == unix.EINTR {
				continue
			}
			if err != nil || m == 0 {
				return fmt.Errorf("a client was disconnected: %d bytes, %v", m, err)
			}
			c.take(k, buf[:m])
		}
		if n == 0 {
			select {
			case <-stop:
				return nil
			default:
			}
		}
	}
}

// count counts a message by its payload, which begins with the time.
func (c *clients) count(payload []byte, at int64) {
	c.delivered++
	c.latency = append(c.latency, at-int64(binary.BigEndian.Uint64(payload)))
}

// takeFrames counts messages. All have one size.
func (c *clients) takeFrames(k *client, b []byte) {
	size, at := c.shape.FrameSize(), rounds.Now()
	count := func(frame []byte) { c.count(frame[size-c.shape.Payload:], at) }
	if len(k.partial) > 0 {
		n := min(len(b), size-len(k.partial))
		k.partial, b = append(k.partial, b[:n]...), b[n:]
		if len(k.partial) < size {
			return
		}
		count(k.partial)
		k.partial = k.partial[:0]
	}
	for ; len(b) >= size; b = b[size:] {
		count(b)
	}
	k.partial = append(k.partial, b...)
}

func (c *clients) quantile(q float64) time.Duration {
	slices.Sort(c.latency)
	return time.Duration(c.latency[int(q*float64(len(c.latency)-1))])
}
