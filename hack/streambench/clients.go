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
)

// clients are all clients of a round, read by one epoll loop.
type clients struct {
	shape     *shape
	ep        int
	conns     map[int32]*client
	delivered int
	latency   []int64 // of every message, in ns
}

type client struct {
	fd      int
	partial []byte
	keep    net.Conn
}

// connect opens and subscribes all clients.
func connect(s *shape, kind, addr string) (*clients, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	c := &clients{shape: s, ep: ep, conns: map[int32]*client{}}
	for i := range s.clients {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
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
func subscribe(nc net.Conn, s *shape, kind string, number int) error {
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
	for i, topic := range s.wants(number) {
		command := fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":"%s","flush_ms":%d}`, i, topicOf(topic), s.flush.Milliseconds())
		frame := append([]byte{0x81, 0x80 | byte(len(command)), 0, 0, 0, 0}, command...) // masked with zeros, below 126 bytes
		if _, err := nc.Write(frame); err != nil {
			return err
		}
	}
	var got []byte
	for b := make([]byte, 4096); strings.Count(string(got), `"op":"subscribed"`) < s.each || got[len(got)-1] != '}'; {
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

// take counts messages. All have one size; the time is at the start of the payload.
func (c *clients) take(k *client, b []byte) {
	size, at := c.shape.frameSize(), now()
	count := func(frame []byte) {
		c.delivered++
		c.latency = append(c.latency, at-int64(binary.BigEndian.Uint64(frame[size-c.shape.payload:])))
	}
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
