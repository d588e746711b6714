package fixdoor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Swarm is many sessions that one thread reads with epoll, each with at most one order without a report. A connection
// that ends is an error: nothing is killed here. All methods are for one goroutine.
type Swarm struct {
	cfg     SwarmConfig
	ep      int
	members []member // logged on, or about to; by their number
	at      []int32  // number of the member, by descriptor
	on      int      // members that are logged on
	by      []Flow   // orders, by partition
	waiting int      // orders without a report
	turn    int      // the member that is asked next
	again   int      // Logons that were repeated
	refused int      // of those, since one was taken

	out    Session // scratch for messages
	buf    []byte
	events []unix.EpollEvent
	took   []time.Duration // from when an order was due to its report; nil: they are not kept
}

// SwarmConfig is who the sessions are.
type SwarmConfig struct {
	Gateways []string // ip:port; session n is at number n modulo their number
	Names    []Name   // by number
	Home     func(version, sender, target string) wire.PartitionID
	Password string // of all, with the user of WriteSessions
	Version  fixorder.Version
	Run      uint64
	Probe    int // of the ClOrdIDs of partition 0; that of another one is as much higher
	// Logons are how many sessions may wait for the answer to their Logon; 0 is 256. A gateway keeps 1,024 connections
	// without one, each for 5 s.
	Logons int
	// Most is how many orders a partition may get.
	Most int
}

// Flow is what was sent to a partition.
type Flow struct {
	Partition wire.PartitionID
	ID        fixorder.ID // of its orders
	Orders    []load.Order
	maker     *fixorder.Maker
}

// member is one session.
type member struct {
	fd        int32
	partition uint16
	on        bool
	in, out   uint32 // the next numbers
	order     int32  // the order without a report, 1 for that at 0; 0: none
	due       int64  // when it was due, on the scale of the caller
	partial   []byte
}

const (
	// maxPartitions bounds those of a grid, and so the probes of a swarm.
	maxPartitions = 16
	// logonsAtOnce is the default of SwarmConfig.Logons.
	logonsAtOnce = 256
	// swarmPatience is how long nothing may happen.
	swarmPatience = 30 * time.Second
)

// NewSwarm returns a swarm without sessions.
func NewSwarm(cfg SwarmConfig) (_ *Swarm, err error) {
	if cfg.Logons == 0 {
		cfg.Logons = logonsAtOnce
	}
	w := &Swarm{cfg: cfg, buf: make([]byte, 64<<10), events: make([]unix.EpollEvent, 256)}
	if w.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	return w, nil
}

// Close ends all connections.
func (w *Swarm) Close() {
	for i := range w.members {
		_ = unix.Close(int(w.members[i].fd)) // it is not used any more
	}
	_ = unix.Close(w.ep)
}

// Members is how many sessions there are.
func (w *Swarm) Members() int { return len(w.members) }

// Flows are what was sent, by partition.
func (w *Swarm) Flows() []Flow { return w.by }

// Grow logs sessions on until there are n.
func (w *Swarm) Grow(ctx context.Context, n int) error {
	for heard, last := time.Now(), w.on; w.on < n; {
		for len(w.members) < n && len(w.members)-w.on < w.cfg.Logons {
			if err := w.connect(len(w.members)); err != nil {
				return fmt.Errorf("session %d, %s: %w", len(w.members), w.cfg.Names[len(w.members)], err)
			}
		}
		if err := w.pump(ctx, patience); err != nil {
			return err
		}
		if w.on != last {
			heard, last = time.Now(), w.on
		}
		if time.Since(heard) > swarmPatience {
			return fmt.Errorf("%d of %d sessions are logged on, and for %v no further one", w.on, n, swarmPatience)
		}
	}
	return nil
}

// connect opens a connection for the next session and sends the Logon.
func (w *Swarm) connect(n int) error {
	name := w.cfg.Names[n]
	p := w.cfg.Home(name.Version, name.Sender, name.Target)
	if err := w.flow(int(p)); err != nil {
		return err
	}
	w.members = append(w.members, member{partition: uint16(p)})
	if err := w.dial(n); err != nil {
		w.members = w.members[:n]
		return err
	}
	return nil
}

// dial gives a session a connection, and sends its Logon.
func (w *Swarm) dial(n int) error {
	address := w.cfg.Gateways[n%len(w.cfg.Gateways)]
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w; raise the limit of descriptors (ulimit -n)", err)
	}
	if err := errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
		unix.EpollCtl(w.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", address, err), unix.Close(fd))
	}
	for fd >= len(w.at) {
		w.at = append(w.at, make([]int32, max(1024, len(w.at)))...)
	}
	w.at[fd] = int32(n)
	w.members[n] = member{fd: int32(fd), partition: w.members[n].partition, in: 1, out: 1}
	return w.say(n, "A", "98=0\x01108="+strconv.Itoa(int(heartBt/time.Second))+"\x01141=Y\x01553="+User+"\x01554="+w.cfg.Password+"\x01")
}

// maxAgain bounds how many Logons in a row may be refused.
const maxAgain = 1000

// redial logs a session on again whose Logon was refused: the grid may have been busy. It does so at most as often as
// Logons are refused while others are taken.
func (w *Swarm) redial(n int) error {
	if w.refused++; w.refused > min(maxAgain, len(w.members)) {
		return fmt.Errorf("its Logon is refused, and %d before it: %w", w.refused-1, io.ErrUnexpectedEOF)
	}
	w.again++
	_ = unix.Close(int(w.members[n].fd)) // it is not used any more
	return w.dial(n)
}

// Again is how many Logons were repeated, since they were refused.
func (w *Swarm) Again() int { return w.again }

// flow makes room for the orders of a partition.
func (w *Swarm) flow(p int) error {
	if p >= maxPartitions {
		return fmt.Errorf("partition %s, allowed: the first %d", wire.PartitionID(p), maxPartitions)
	}
	for len(w.by) <= p {
		f := Flow{Partition: wire.PartitionID(len(w.by)), ID: fixorder.ID{Run: w.cfg.Run, Probe: w.cfg.Probe + len(w.by)}}
		var err error
		if f.maker, err = fixorder.NewMaker(w.cfg.Version, f.ID); err != nil {
			return err
		}
		f.Orders = make([]load.Order, 0, w.cfg.Most)
		w.by = append(w.by, f)
	}
	return nil
}

// say sends a message of the session layer.
func (w *Swarm) say(n int, kind, fields string) error {
	x, m := &w.out, &w.members[n]
	x.name = w.cfg.Names[n]
	x.write = x.appendMessage(x.write[:0], kind, uint64(m.out), nil, fields)
	return w.write(m, x.write)
}

func (w *Swarm) write(m *member, b []byte) error {
	m.out++
	if n, err := unix.SendmsgN(int(m.fd), b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err != nil || n < len(b) {
		return fmt.Errorf("%d of %d bytes were written: %w", max(n, 0), len(b), err)
	}
	return nil
}

// Submit sends an order by the next session that has none under way; due is when it was to be sent, unix nanoseconds.
// ok is false if all sessions wait, or the partition has its most.
func (w *Swarm) Submit(due int64) (ok bool, err error) {
	for range w.members {
		n := w.turn
		w.turn = (w.turn + 1) % len(w.members)
		m := &w.members[n]
		f := &w.by[m.partition]
		if m.order != 0 || len(f.Orders) == cap(f.Orders) {
			continue
		}
		now := time.Now()
		index := len(f.Orders)
		x := &w.out
		if x.write, err = fixorder.Readdress(x.write[:0], f.maker.Make(int64(index), int64(m.out), now, now),
			&fixorder.Address{Sender: w.cfg.Names[n].Sender, Target: w.cfg.Names[n].Target, Seq: uint64(m.out)}); err != nil {
			return false, err
		}
		f.Orders = append(f.Orders, load.Order{Fate: load.Unknown})
		m.order, m.due = int32(index+1), due
		w.waiting++
		return true, w.write(m, x.write)
	}
	return false, nil
}

// Waiting is how many orders have no report yet.
func (w *Swarm) Waiting() int { return w.waiting }

// patience is how long a swarm waits for something at the most before it looks at its context.
const patience = 20 * time.Millisecond

// pump waits for what comes, at most so long, and handles it. epoll_wait counts in milliseconds, and a thread that looks again
// and again instead of waiting for less takes a core from the gateways and nodes whose latency it measures.
func (w *Swarm) pump(ctx context.Context, most time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if most > 0 {
		until := unix.NsecToTimespec(int64(min(most, patience)))
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(w.ep), Events: unix.POLLIN}}, &until, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	n, err := unix.EpollWait(w.ep, w.events, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	for i := range max(n, 0) {
		fd := w.events[i].Fd
		who := int(w.at[fd])
		got, err := unix.Read(int(fd), w.buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err == nil && got == 0:
			err = io.ErrUnexpectedEOF
		}
		if err != nil && !w.members[who].on {
			err = w.redial(who)
		} else if err == nil {
			err = w.take(who, w.buf[:got])
		}
		if err != nil {
			return fmt.Errorf("session %s at %s: %w", w.cfg.Names[who], w.cfg.Gateways[who%len(w.cfg.Gateways)], err)
		}
	}
	return nil
}

// take reads the messages of what came for a session.
func (w *Swarm) take(n int, b []byte) error {
	m := &w.members[n]
	if len(m.partial) > 0 {
		b = append(m.partial, b...)
	}
	for {
		x, rest, err := next(b)
		if err != nil {
			return err
		}
		if rest == nil {
			break
		}
		b = rest
		if x.seq != uint64(m.in) {
			return fmt.Errorf("MsgSeqNum (34) is %d, allowed: %d", x.seq, m.in)
		}
		m.in++
		if err := w.message(n, m, &x); err != nil {
			return err
		}
	}
	if m.partial = nil; len(b) > 0 {
		m.partial = append(m.partial, b...)
	}
	return nil
}

func (w *Swarm) message(n int, m *member, x *message) error {
	switch x.kind {
	case '0':
	case '1':
		return w.say(n, "0", "112="+string(x.get("\x01112="))+"\x01")
	case 'A':
		m.on, w.refused = true, 0
		w.on++
	case '8':
		return w.report(m, x)
	default:
		return fmt.Errorf("the gateway sends MsgType (35) %.4q: %.200s", x.get("\x0135="), x.get("\x0158="))
	}
	return nil
}

// report takes an ExecutionReport.
func (w *Swarm) report(m *member, x *message) error {
	f := &w.by[m.partition]
	id, index, ok := fixorder.ParseID(x.get("\x0111="))
	if !ok || id != f.ID || m.order == 0 || index != int64(m.order-1) {
		return fmt.Errorf("an ExecutionReport of ClOrdID (11) %.40q, which it did not wait for", x.get("\x0111="))
	}
	o := &f.Orders[index]
	m.order = 0
	w.waiting--
	if w.took != nil {
		w.took = append(w.took, time.Duration(time.Now().UnixNano()-m.due))
	}
	if string(x.get("\x01150=")) != "0" {
		o.Fate = load.Rejected
		return fmt.Errorf("an order is refused: OrdRejReason (103) %s: %s", x.get("\x01103="), x.get("\x0158="))
	}
	r, partition, err := place(x.get("\x0137="))
	if err != nil || partition != wire.PartitionID(m.partition).String() {
		return fmt.Errorf("OrderID (37) is %.40q, allowed: an entry of partition %s", x.get("\x0137="), wire.PartitionID(m.partition))
	}
	o.Fate, o.Seq, o.Epoch = load.Acked, r.Seq, r.Epoch
	return nil
}
