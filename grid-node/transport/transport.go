package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/tlsrecord"
)

// Kind names an implementation of Loop.
type Kind string

const (
	// KindAuto is KindEpoll on Linux and KindNet elsewhere.
	KindAuto Kind = ""
	// KindEpoll is the raw epoll loop; Linux only.
	KindEpoll Kind = "epoll"
	// KindNet is the portable loop on the net package.
	KindNet Kind = "net"
)

// Resolve returns what KindAuto stands for here, and any other kind as it is.
func (k Kind) Resolve() Kind {
	switch {
	case k != KindAuto:
		return k
	case runtime.GOOS == "linux":
		return KindEpoll
	}
	return KindNet
}

// Pinned reports whether a Loop of this kind stays on one OS thread.
func (k Kind) Pinned() bool { return k.Resolve() == KindEpoll }

// Handler receives everything that happens on a Loop. All methods run on the
// loop and must not block: while one runs, nothing else of the process is served.
type Handler interface {
	// OnOpen is called once for an accepted connection and once for a dialled one
	// after the connection is established.
	OnOpen(c *Conn)
	// OnFrames gets the received, unconsumed bytes. It returns how many it consumed; the
	// rest is presented again together with further input. buf is valid during the call
	// only. A handler must stop consuming when c.Backlogged(); it is called again after
	// the output drained. An error closes the connection after its buffered output was
	// written.
	OnFrames(c *Conn, buf []byte) (int, error)
	// OnClose is called once for every connection that was opened or dialled. err is the
	// reason and never nil; use errors.Is with the Err… variables.
	OnClose(c *Conn, err error)
	// OnTick is called every Config.Tick or later, before OnWakeEnd.
	OnTick()
	// OnWakeEnd is called after all input of one wake-up was presented and before the
	// remaining output is written.
	OnWakeEnd()
}

// Afterwards is a Handler with work that may come after the output of a wake-up.
type Afterwards interface {
	// OnWritten is called after the output of a wake-up was written, or is as far as the
	// kernel takes it. What it does delays the next input, and it must not write. It
	// reports whether it is to be called again without waiting for input.
	OnWritten() (again bool)
}

// Paced is a Handler whose OnTick may come later than every Config.Tick, so that a process
// with nothing to do sleeps.
type Paced interface {
	// Rest returns how long OnTick may stay away; below Config.Tick stands for that. It is
	// asked after each wake-up, and must not be over 250 ms, in which time limits of
	// connections are checked.
	Rest() time.Duration
}

// Loop runs a Handler. Listen may be called before Run from any goroutine;
// Dial only on the loop (from a Handler method or a posted function); Post, Stop
// and Stats from anywhere.
type Loop interface {
	// Listen starts to accept on a TCP address and returns the bound address. It may be
	// called several times; Conn.Door returns by which a connection was accepted.
	Listen(addr string) (net.Addr, error)
	// Dial starts to connect to "host:port"; a host name is resolved off the loop. The
	// result arrives as OnOpen, or as OnClose with the reason.
	Dial(addr string, tag any) *Conn
	// Adopt serves a connection that was made elsewhere, like one that was dialled; from any
	// goroutine. session is that of its TLS handshake, nil without; received is data that
	// came already. OnOpen is its first call. After an error nc is closed. With KindEpoll it
	// has to be a TCP connection of package net.
	Adopt(nc net.Conn, session *tlsrecord.Session, received []byte, tag any) error
	// Post runs f on the loop, in order of posting. It never blocks and returns
	// false after the loop ended.
	Post(f func()) bool
	// Clock is the loop's clock; read it on the loop only.
	Clock() *Clock
	// Run serves until Stop and returns the error that stopped it, or nil.
	Run() error
	// Stop ends Run after the current wake-up. Connections are closed.
	Stop()
	// Stats returns counters; on the loop only.
	Stats() Stats
}

// Stats are monotonic counters since the start; those of type int are gauges.
type Stats struct {
	Conns     int    // open connections
	Accepted  uint64 // connections accepted
	Adopted   uint64 // connections handed over by another loop, or to Adopt
	Refused   uint64 // closed at accept: Config.MaxConns, TLS.MaxHandshakes, or no file descriptor
	NoTLS     uint64 // accepted connections whose TLS handshake failed
	Greeting  int    // TLS handshakes that wait for their peer
	Computing int    // TLS handshakes that compute, or wait for their turn
	WakeUps   uint64 // wake-ups with at least one event
	BytesIn   uint64
	BytesOut  uint64
	Reads     uint64 // receive system calls that returned data
	Writes    uint64 // send system calls
	Paused    uint64 // times a connection's reading was stopped by back-pressure
	SlowPeers uint64 // connections closed by HardOut, WriteStall, MaxUnread or MaxMemory
	Waits     uint64 // times a connection's input had to wait for its turn
	Waiting   int    // connections whose input waits for its turn
	Rests     uint64 // times deferrable work had used its share of the time
	Unread    int    // bytes that connections have not read yet, except Exempt ones
	InputHeld int    // bytes of buffers of received and unconsumed input, except Exempt ones
	Resets    uint64 // connections ended by a reset, because the kernel still held their output
	// Unfinished are connections closed because a frame was not complete in time, or
	// by MaxHeldInput.
	Unfinished uint64
}

// Reasons passed to OnClose.
var (
	ErrPeerClosed  = errors.New("the peer closed the connection")
	ErrStopped     = errors.New("the loop was stopped")
	ErrClosed      = errors.New("closed by the handler")
	ErrOutputFull  = errors.New("output buffer over its hard limit")
	ErrSlowReader  = errors.New("the peer reads too slowly: no output accepted within the write stall limit")
	ErrInputFull   = errors.New("incomplete frame over the input limit")
	ErrUnfinished  = errors.New("a frame was not finished in time")
	ErrMemory      = errors.New("closed to free memory: all buffers together are over the limit")
	ErrUnread      = fmt.Errorf("%w: it has read nothing for long while unread output is over its limit", ErrMemory)
	ErrHeldInput   = fmt.Errorf("%w: it holds much unfinished or waiting input", ErrMemory)
	ErrDialTimeout = errors.New("connection attempt timed out")
)

// Config holds the limits of a Loop. Zero fields take the documented default.
type Config struct {
	MaxConns   int // default 4096 connections; those that this side opened do not count
	ReadBuffer int // bytes read from one connection per wake-up; default 64 KiB
	SoftOut    int // unsent bytes above which reading pauses; default 256 KiB
	HardOut    int // unsent bytes above which the connection is closed; default 8 MiB
	MaxInput   int // bytes of one incomplete frame; default 1 MiB
	MaxMemory  int // bytes of all buffers together, checked every 250 ms; default 256 MiB
	// MaxUnread bounds the output that all connections together have not read; one more
	// byte ends a connection that has read nothing for long. Default MaxMemory / 4.
	MaxUnread int
	// MaxHeldInput bounds the buffers of received and unconsumed input of all connections
	// together: unfinished frames, and input that waits. One more byte ends a connection
	// that holds much. Default MaxMemory / 4.
	MaxHeldInput int
	// Work bounds the deferrable work in one wake-up: the sum of Conn.Spend, and, counted
	// apart, the bytes written of long outputs. Default 256 KiB.
	Work        int
	Tick        time.Duration // interval of OnTick; default 20 ms
	WriteStall  time.Duration // longest time without progress of pending output; default 10 s
	DialTimeout time.Duration // default 2 s
	Source      netip.Addr    // local address of dialled connections; default: the kernel chooses
	// WakeUp, if set, is called at the end of each wake-up with work, with its duration,
	// writes included.
	WakeUp func(time.Duration)
	TLS    *TLS // nil: plain TCP
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	defD := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxConns, 4096)
	def(&c.ReadBuffer, 64<<10)
	def(&c.SoftOut, 256<<10)
	def(&c.HardOut, 8<<20)
	def(&c.MaxInput, 1<<20)
	def(&c.MaxMemory, 256<<20)
	def(&c.MaxUnread, c.MaxMemory/4)
	def(&c.MaxHeldInput, c.MaxMemory/4)
	def(&c.Work, 256<<10)
	defD(&c.Tick, 20*time.Millisecond)
	defD(&c.WriteStall, 10*time.Second)
	defD(&c.DialTimeout, 2*time.Second)
	if c.TLS != nil {
		t := *c.TLS
		def(&t.MaxHandshakes, 128)
		def(&t.MaxComputing, max(1, runtime.GOMAXPROCS(0)/4))
		defD(&t.HandshakeTimeout, 3*time.Second)
		c.TLS = &t
	}
	return c
}

// listenTCP binds addr. Multipath TCP, Go's default for listeners, is off: its sockets
// take a slower path in the kernel and it is not needed.
func listenTCP(addr string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	return lc.Listen(context.Background(), "tcp", addr)
}

// New returns a Loop of the given kind that serves h.
func New(kind Kind, cfg Config, h Handler) (Loop, error) {
	cfg = cfg.withDefaults()
	switch kind.Resolve() {
	case KindEpoll:
		return newEpollLoop(cfg, h)
	case KindNet:
		return newNetLoop(cfg, h), nil
	}
	return nil, fmt.Errorf("transport kind %q: allowed are %q (Linux) and %q", kind, KindEpoll, KindNet)
}
