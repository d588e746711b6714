package main

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/hack/streambench/rounds"
)

// floor is the least that a server can do: one thread, non-blocking sockets, a frame made once for each message and handed
// to the kernel for each socket of the topic, by way of a buffer that holds what is there already, or of the interval.
type floor struct {
	shape   *rounds.Shape
	ready   chan []int
	topics  [][]int // sockets
	buffers map[int][]byte
	pending []int
	queued  atomic.Int64
	lost    atomic.Int64
	opened  []net.Conn
}

func newFloor(s *rounds.Shape) *floor {
	return &floor{shape: s, ready: make(chan []int, 1<<16), topics: make([][]int, s.Topics), buffers: map[int][]byte{}}
}

func (f *floor) Listen() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for range f.shape.Clients {
			nc, err := ln.Accept()
			if err != nil {
				panic(err)
			}
			f.accept(nc.(*net.TCPConn))
		}
		f.serve()
	}()
	return ln.Addr().String(), nil
}

func (f *floor) accept(nc *net.TCPConn) {
	var number [4]byte
	if _, err := io.ReadFull(nc, number[:]); err != nil {
		panic(err)
	}
	raw, err := nc.SyscallConn()
	if err != nil {
		panic(err)
	}
	err = raw.Control(func(fd uintptr) {
		for _, topic := range f.shape.Wants(int(binary.BigEndian.Uint32(number[:]))) {
			f.topics[topic] = append(f.topics[topic], int(fd))
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 32<<10)
	})
	if err != nil {
		panic(err)
	}
	f.opened = append(f.opened, nc)
	if _, err := nc.Write([]byte{1}); err != nil {
		panic(err)
	}
}

func (f *floor) serve() {
	runtime.LockOSThread()
	frame := make([]byte, f.shape.FrameSize())
	flushAt := time.Now().Add(f.shape.Flush)
	for list := range f.ready {
		for _, topic := range list[1:] {
			binary.BigEndian.PutUint64(frame[len(frame)-f.shape.Payload:], uint64(list[0]))
			for _, fd := range f.topics[topic] {
				b := f.buffers[fd]
				if len(b) == 0 {
					f.pending = append(f.pending, fd)
				}
				f.buffers[fd] = append(b, frame...)
			}
		}
		switch {
		case f.shape.Flush == 0 && len(f.ready) == 0:
			f.flush()
		case f.shape.Flush > 0 && time.Now().After(flushAt):
			f.flush()
			flushAt = flushAt.Add(f.shape.Flush)
		}
		f.queued.Add(-1)
	}
}

func (f *floor) flush() {
	for _, fd := range f.pending {
		f.write(fd, f.buffers[fd])
		f.buffers[fd] = f.buffers[fd][:0]
	}
	f.pending = f.pending[:0]
}

func (f *floor) write(fd int, b []byte) {
	for len(b) > 0 {
		n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		if err == unix.EAGAIN {
			if len(b)%f.shape.FrameSize() == 0 {
				f.lost.Add(int64(len(b) / f.shape.FrameSize()))
				return
			}
			continue // a frame is begun
		}
		if err != nil {
			panic(err)
		}
		b = b[n:]
	}
}

func (f *floor) Publish(list []int) {
	f.queued.Add(1)
	f.ready <- append([]int{int(rounds.Now())}, list...)
}

func (f *floor) Finish() int {
	f.Publish(nil) // flushes
	for f.queued.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	return int(f.lost.Load())
}
