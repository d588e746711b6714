package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// desk serves two kinds of frames, of a letter: 'r' is deferrable and is answered with
// answer bytes, 'u' is urgent and is answered at once. Its fields belong to the loop.
type desk struct {
	echo
	answer   int
	inTurns  bool // false: everything is done on arrival, the control
	done     int  // bytes of deferrable answers
	atUrgent []int
	order    []*Conn // connections in the order their reads were served
	longest  int     // bytes of answers in one wake-up
	wakeUp   int
}

func (d *desk) OnFrames(c *Conn, buf []byte) (int, error) {
	used := 0
	for !c.Backlogged() && used < len(buf) {
		if buf[used] == 'u' {
			c.Urgent()
			d.atUrgent = append(d.atUrgent, d.done)
			c.SetOut(append(c.Out(), 'u'))
			used++
			continue
		}
		if d.inTurns && !c.Turn() {
			break
		}
		c.SetOut(append(c.Out(), make([]byte, d.answer)...))
		c.Spend(d.answer)
		d.done += d.answer
		d.wakeUp += d.answer
		d.order = append(d.order, c)
		used++
	}
	return used, nil
}

func (d *desk) OnWakeEnd() {
	d.longest = max(d.longest, d.wakeUp)
	d.wakeUp = 0
}

// serveDesk starts a loop with a desk. It can be blocked from outside.
func serveDesk(t *testing.T, kind Kind, cfg Config, d *desk) (addr string, hold func() (release func())) {
	t.Helper()
	d.closed = make(chan error, 1024)
	l, addr := newLoop(t, kind, cfg, d)
	d.loop = l
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Stop()
		if err := within(t, done); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return addr, func() func() {
		held, free := make(chan struct{}), make(chan struct{})
		l.Post(func() { close(held); <-free })
		within(t, held)
		return func() { close(free) }
	}
}

// Many request much at once, and one sends an urgent message. How much is answered before
// it, and how much in one wake-up, is bounded by Config.Work, however many they are; in
// the control, without turns, it is all of it.
func TestWhatCannotWaitGoesFirst(t *testing.T) {
	const askers, asked, answer, work = 120, 16, 4 << 10, 64 << 10
	all := askers * asked * answer
	forEach(t, func(t *testing.T, kind Kind) {
		before := map[bool]int{}
		for _, inTurns := range []bool{false, true} {
			d := &desk{answer: answer, inTurns: inTurns}
			addr, hold := serveDesk(t, kind, Config{Work: work, SoftOut: 1 << 20}, d)
			conns := make([]net.Conn, askers)
			for i := range conns {
				conns[i] = dial(t, addr)
			}
			urgent := dial(t, addr)
			eventually(t, "all are accepted", func() bool {
				return onLoop(t, d.loop, func() int { return d.loop.Stats().Conns }) == askers+1
			})
			release := hold()
			ask := make([]byte, asked)
			for i := range ask {
				ask[i] = 'r'
			}
			for _, c := range conns {
				if _, err := c.Write(ask); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := urgent.Write([]byte{'u'}); err != nil {
				t.Fatal(err)
			}
			if l, ok := d.loop.(*netLoop); ok { // goroutines read it
				eventually(t, "all of it is read", func() bool { return len(l.others) == askers+1 })
			}
			release()
			if _, err := io.ReadFull(urgent, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			for _, c := range conns { // none is lost
				if n, err := io.CopyN(io.Discard, c, asked*answer); err != nil {
					t.Fatalf("%d of %d bytes: %v", n, asked*answer, err)
				}
			}
			before[inTurns] = onLoop(t, d.loop, func() int { return d.atUrgent[0] })
			longest := onLoop(t, d.loop, func() int { return d.longest })
			t.Logf("in turns %v: %d of %d bytes answered before what cannot wait; at most %d in one wake-up", inTurns, before[inTurns], all, longest)
			if inTurns && longest > work+answer {
				t.Errorf("%d bytes of work in one wake-up, allowed: %d and one piece more", longest, work)
			}
		}
		// It is read in one of the first wake-ups, and requests wait in most of these.
		if limit := all / 4; before[true] > limit {
			t.Errorf("%d bytes answered before what cannot wait, allowed: %d; without turns: %d", before[true], limit, before[false])
		}
	})
}

// Waiting connections are served in turns: none twice while another waits.
func TestTurnsAreFair(t *testing.T) {
	const askers, asked = 20, 40
	forEach(t, func(t *testing.T, kind Kind) {
		d := &desk{answer: turnShare, inTurns: true}
		addr, hold := serveDesk(t, kind, Config{Work: turnShare, SoftOut: 8 << 20}, d)
		conns := make([]net.Conn, askers)
		for i := range conns {
			conns[i] = dial(t, addr)
		}
		release := hold()
		ask := make([]byte, asked)
		for i := range ask {
			ask[i] = 'r'
		}
		for _, c := range conns {
			if _, err := c.Write(ask); err != nil {
				t.Fatal(err)
			}
		}
		release()
		for _, c := range conns {
			if _, err := io.CopyN(io.Discard, c, asked*turnShare); err != nil {
				t.Fatal(err)
			}
		}
		order := onLoop(t, d.loop, func() []*Conn { return slices.Clone(d.order) })
		from, to := allWait(order, askers, asked)
		if to-from < askers {
			t.Skipf("INVALID: at no time all %d waited; the requests of the last came when others had been answered", askers)
		}
		last := map[*Conn]int{}
		for i, c := range order[from:to] {
			if at, again := last[c]; again && i-at < askers/2 {
				t.Fatalf("a connection was served again after %d others, %d wait", i-at-1, askers)
			}
			last[c] = i
		}
		if len(last) != askers {
			t.Errorf("%d of %d were served while all waited, in %d turns", len(last), askers, to-from)
		}
	})
}

// allWait returns the part of the turns in which every connection waits: from when all
// have been served once until one has got everything it requested.
func allWait(order []*Conn, askers, asked int) (from, to int) {
	turns := map[*Conn]int{}
	for i, c := range order {
		if turns[c]++; turns[c] == 1 && len(turns) == askers {
			from = i + 1
		}
		if turns[c] == asked {
			return from, i
		}
	}
	return from, len(order)
}

// A lone connection is not slowed down by turns: it waits for its own work only.
func TestTurnsOfOneConnection(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		d := &desk{answer: 1 << 10, inTurns: true}
		addr, _ := serveDesk(t, kind, Config{Work: 16 << 10}, d)
		c := dial(t, addr)
		const n = 4000
		go func() {
			for range n {
				if _, err := c.Write([]byte{'r'}); err != nil {
					return
				}
			}
		}()
		if _, err := io.CopyN(io.Discard, c, n<<10); err != nil {
			t.Fatal(err)
		}
		eventually(t, "no connection waits, and nothing is unread", func() bool {
			s := onLoop(t, d.loop, d.loop.Stats)
			return s.Waiting == 0 && s.Unread == 0
		})
	})
}

// A connection whose peer resets it while it waits for its turn ends, and the others
// continue.
func TestPeersThatGoWhileTheyWait(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		d := &desk{answer: 8 << 10, inTurns: true}
		addr, hold := serveDesk(t, kind, Config{Work: 8 << 10, SoftOut: 8 << 20}, d)
		conns := make([]net.Conn, 30)
		for i := range conns {
			conns[i] = dial(t, addr)
		}
		release := hold()
		for _, c := range conns {
			if _, err := c.Write([]byte("rrrrrrrr")); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range conns {
			if i%2 == 0 {
				_ = tcpOf(c).SetLinger(0)
				_ = tcpOf(c).Close()
			}
		}
		release()
		for i, c := range conns {
			if i%2 == 1 {
				if _, err := io.CopyN(io.Discard, c, 64<<10); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, "half of them are closed", func() bool {
			return onLoop(t, d.loop, func() int { return d.loop.Stats().Conns }) == len(conns)/2
		})
	})
}

// Connections together hold no more input than allowed, whatever the sum of their own
// limits; an exempt one is not affected.
func TestHeldInputIsBounded(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		first := true
		e := &echo{setup: func(c *Conn) {
			if first {
				first = false
				c.Exempt()
			}
		}}
		const bound = 1 << 20
		addr := serve(t, kind, Config{MaxHeldInput: bound}, e)
		whole := frame(string(make([]byte, 300<<10)))
		mine := dial(t, addr)
		eventually(t, "the first is accepted", func() bool { return onLoop(t, e.loop, func() int { return e.loop.Stats().Conns }) == 1 })
		if _, err := mine.Write(whole[:200<<10]); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			c := dial(t, addr)
			go func() { _, _ = c.Write(whole[:250<<10]) }()
		}
		eventually(t, "enough of them are closed", func() bool {
			s := onLoop(t, e.loop, func() Stats { return e.loop.Stats() })
			return s.Unfinished >= 30 && s.InputHeld <= bound
		})
		for range 30 {
			if err := within(t, e.closed); !errors.Is(err, ErrMemory) && !errors.Is(err, ErrPeerClosed) {
				t.Fatalf("closed: %v", err)
			}
		}
		if got := exchange(t, mine, whole[200<<10:], len(whole)); len(got) != len(whole) {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

// Unread output of all connections together is bounded, and those that have read nothing
// for longest are closed; a reader stays.
func TestUnreadOutputIsBounded(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		d := &desk{answer: 64 << 10}
		d.setup = func(c *Conn) { c.SetSendBuffer(128 << 10) }
		const bound = 2 << 20
		addr, _ := serveDesk(t, kind, Config{MaxUnread: bound, SoftOut: 256 << 10}, d)
		reader := dial(t, addr)
		var stop = make(chan struct{})
		var rounds atomic.Int64
		read := make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					read <- nil
					return
				default:
				}
				if _, err := reader.Write([]byte("rrrrrrrr")); err != nil {
					read <- err
					return
				}
				if _, err := io.CopyN(io.Discard, reader, 8*64<<10); err != nil {
					read <- err
					return
				}
				rounds.Add(1)
			}
		}()
		for range 60 {
			// The earlier ones have read nothing since the reader last did.
			at := rounds.Load()
			eventually(t, "the reader continues", func() bool { return rounds.Load() >= at+3 || len(read) > 0 })
			c := dial(t, addr)
			_ = tcpOf(c).SetReadBuffer(4 << 10)
			if _, err := c.Write([]byte("rrrrrrrrrrrr")); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "enough of them are closed", func() bool {
			s := onLoop(t, d.loop, func() Stats { return d.loop.Stats() })
			return s.SlowPeers >= 30 && s.Unread <= bound
		})
		close(stop)
		if err := within(t, read); err != nil {
			t.Fatalf("a reader was closed: %v", err)
		}
	})
}

// kernelHolds is how many bytes the kernel holds for output of connections of a port.
func kernelHolds(t *testing.T, addr string) (total int) {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	var p int
	_, _ = fmt.Sscan(port, &p)
	for _, l := range procNetTCP(t) {
		if l.localPort == p {
			total += l.txQueue
		}
	}
	return total
}

// Closed connections leave nothing behind: the kernel's buffered output for a peer that
// does not read is dropped with them. It would stay for minutes, as much again for each
// next one. The same holds for peers that close only their half.
func TestEndedConnectionsLeaveNothingInTheKernel(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		if len(procNetTCP(t)) == 0 {
			t.Skip("no /proc/net/tcp here")
		}
		for name, half := range map[string]bool{"reads nothing": false, "closes its half and reads nothing": true} {
			t.Run(name, func(t *testing.T) {
				e := &echo{repeat: 512}
				addr := serve(t, kind, Config{WriteStall: 2 * time.Second, SoftOut: 64 << 10, HardOut: 64 << 20}, e)
				const n = 10
				body := frame(string(make([]byte, 16<<10)))
				for range n {
					c := dial(t, addr)
					_ = tcpOf(c).SetReadBuffer(4 << 10)
					if _, err := c.Write(body); err != nil {
						t.Fatal(err)
					}
					if half {
						_ = tcpOf(c).CloseWrite()
					}
				}
				most := 0
				for len(e.closed) < n {
					most = max(most, kernelHolds(t, addr))
					time.Sleep(time.Millisecond)
				}
				eventually(t, "the loop has closed them", func() bool { return onLoop(t, e.loop, func() int { return e.loop.Stats().Conns }) == 0 })
				s := onLoop(t, e.loop, func() Stats { return e.loop.Stats() })
				left := kernelHolds(t, addr)
				t.Logf("%d connections: %d bytes while they stood, %d after; %d resets", n, most, left, s.Resets)
				if s.Resets == 0 { // each is of a connection that the kernel held something for at its end
					t.Error("the kernel held nothing for any of them at its end: the test is inconclusive")
				}
				if left != 0 {
					t.Errorf("the kernel holds %d bytes for connections that were ended", left)
				}
			})
		}
	})
}

// A peer that closes its half and reads slowly gets all of it.
func TestHalfClosedPeerReadsInItsTime(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{repeat: 8}
		addr := serve(t, kind, Config{SoftOut: 8 << 20}, e)
		c := dial(t, addr)
		body := frame(string(make([]byte, 60<<10)))
		if _, err := c.Write(body); err != nil {
			t.Fatal(err)
		}
		closeWrite(c)
		time.Sleep(1500 * time.Millisecond) // longer than lingerTime
		if n, err := io.Copy(io.Discard, c); err != nil || n != int64(8*len(body)) {
			t.Fatalf("%d of %d bytes, %v", n, 8*len(body), err)
		}
	})
}

// SetSendBuffer bounds what the kernel takes of a peer that does not read.
func TestSendBufferIsBounded(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		if len(procNetTCP(t)) == 0 {
			t.Skip("no /proc/net/tcp here")
		}
		held := map[int]int{}
		for _, size := range []int{0, 64 << 10} {
			e := &echo{repeat: 512, setup: func(c *Conn) {
				if size > 0 {
					c.SetSendBuffer(size)
				}
			}}
			addr := serve(t, kind, Config{SoftOut: 16 << 20, HardOut: 64 << 20}, e)
			c := dial(t, addr)
			if _, err := c.Write(frame(string(make([]byte, 16<<10)))); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the socket is full", func() bool {
				before := kernelHolds(t, addr)
				time.Sleep(50 * time.Millisecond)
				held[size] = kernelHolds(t, addr)
				return before > 0 && before == held[size]
			})
		}
		t.Logf("held by the kernel: %d bytes as it likes, %d with 64 KiB asked for", held[0], held[64<<10])
		if held[64<<10] > 4*64<<10 {
			t.Errorf("%d bytes held with a send buffer of 64 KiB", held[64<<10])
		}
	})
}

// The queue keeps the order of waiting connections and allocates only as it grows.
func TestConnQueue(t *testing.T) {
	var q connQueue
	conns := make([]*Conn, 100)
	for i := range conns {
		conns[i] = &Conn{id: uint64(i)}
	}
	pushed, popped := 0, 0
	for round := range 1000 {
		for range 1 + round%7 {
			q.push(conns[pushed%100])
			pushed++
		}
		for range (q.len() + 1) / 2 {
			if c := q.pop(); c != conns[popped%100] {
				t.Fatalf("place %d: got connection %d", popped, c.id)
			}
			popped++
		}
	}
	if q.len() != pushed-popped || q.len() == 0 {
		t.Fatalf("%d wait, want %d", q.len(), pushed-popped)
	}
	if allocs := testing.AllocsPerRun(1000, func() { q.push(q.pop()) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
