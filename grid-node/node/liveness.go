package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// liveness drives the vitals of all partitions: a loop on a thread of its own, with its
// own connections, so that a busy data loop is not mistaken for a dead process. It shares
// only the vitals with the data loop, which have a mutex, and a few atomics.
//
// A node dials one connection to every node that it sends beacons to, and answers on the
// connection of a beacon. The data loop accepts, reads the Hello, and hands the connection
// over (takeNode in hello.go): a connection must exist before a loop gets stuck, so it is
// dialled with the first beacon and kept. The data loop has checked the certificate, or
// the proof of the peer key, by then, as for a peer; the session with its keys moves along
// with the connection.
type liveness struct {
	*identity
	loop transport.Loop

	vitals atomic.Pointer[[]beating]  // by partition; the data loop replaces the list
	pulses map[string]*pulse          // dialled, by address
	heard  map[*transport.Conn]*pulse // accepted
	dog    *watchdog

	beats   []replica.Beat      // scratch, as those below
	answers []wire.HeartbeatRow // to the Heartbeat that came
	changed []wire.HeartbeatRow
	frameIn wire.Heartbeat

	threadMu sync.Mutex
	thread   metrics.Thread // dog.stats as of the last tick

	badFrames, dropped, dials atomic.Uint64
	links                     [len(protectionNames)]atomic.Int64 // by protection
}

// beating is a partition that beacons are sent for.
type beating struct {
	id wire.PartitionID
	v  *replica.Vitals
}

// pulse is one liveness connection.
type pulse struct {
	addr    string           // data port of the other node
	member  string           // of the other process, once known
	answer  []byte           // of one that was accepted: sent first, and
	records *peerkey.Records // what follows is in them; nil where no key was proved
	handshake
	version uint16          // of the protocol that both speak
	conn    *transport.Conn // nil: a dialled one that is not there, or one that was accepted
	state   linkState
	helloBy int64
	usedAt  int64               // time of the last frame to send
	heardAt int64               // time of the last frame received
	rows    []wire.HeartbeatRow // to be sent now
	out, in rowTable            // last state of either end
	dialAt  int64               // before which it is not dialled again
	backoff time.Duration
}

const (
	maxLivenessConns = 512
	maxPulseFrame    = wire.MaxHeartbeat
	livenessHardOut  = 64 << 10
	// A connection without an answer for this long is redialled: after a cut, the kernel's
	// own retransmission may be seconds away.
	livenessSilence = time.Second
	livenessIdle    = 5 * time.Second // an idle one is closed
)

var (
	errLivenessSilent = errors.New("no answer on the liveness connection")
	errLivenessIdle   = errors.New("nothing to send on the liveness connection")
)

func newLiveness(id *identity) (*liveness, error) {
	l := &liveness{identity: id, pulses: map[string]*pulse{}, heard: map[*transport.Conn]*pulse{},
		dog: newWatchdog(metrics.ThreadNames[1], &id.cfg)}
	l.vitals.Store(&[]beating{})
	var err error
	l.loop, err = transport.New(id.cfg.Transport, transport.Config{
		MaxConns: maxLivenessConns, ReadBuffer: 4 << 10, MaxInput: maxPulseFrame, HardOut: livenessHardOut, MaxMemory: 32 << 20,
		Tick: id.cfg.Beacon, DialTimeout: transportDialTimeout, Source: id.cfg.Source(), TLS: id.cfg.transportTLS(nil),
	}, l)
	return l, err
}

// now reads the clock: vitals need the time after a frame was received, not that of the
// wake-up, since the process may have been suspended in between.
func (l *liveness) now() replica.Time { return replica.Time{Mono: l.loop.Clock().Exact()} }

// OnTick implements transport.Handler.
func (l *liveness) OnTick() {
	now := l.now()
	l.dog.tick(now.Mono)
	l.threadMu.Lock()
	l.thread = l.dog.stats
	l.threadMu.Unlock()
	l.beat(now)
	l.tidy(now.Mono)
}

// beat sends every node the beacons of all its partitions.
func (l *liveness) beat(now replica.Time) {
	l.beats = l.beats[:0]
	for _, b := range *l.vitals.Load() {
		l.beats = b.v.Beats(now, l.beats)
	}
	for i := range l.beats {
		b := &l.beats[i]
		p := l.pulses[b.Address]
		if p == nil {
			if len(l.pulses) >= maxPeers {
				l.dropped.Add(1)
				continue
			}
			p = &pulse{addr: b.Address, backoff: minDialBackoff}
			l.pulses[b.Address] = p
		}
		p.rows = append(p.rows, b.HeartbeatRow)
	}
	for _, p := range l.pulses {
		if len(p.rows) > 0 {
			p.usedAt = now.Mono
		}
		if len(p.rows)+len(p.out.rows) > 0 {
			l.send(now.Mono, p)
		}
		p.rows = p.rows[:0]
	}
}

// send writes the rows of a connection, or starts to connect. Rows that cannot be sent are
// dropped: the next follow soon.
func (l *liveness) send(now int64, p *pulse) {
	switch {
	case p.conn == nil:
		l.dropped.Add(1)
		l.dial(p, now)
	case p.state != ready:
		l.dropped.Add(1)
	case now-p.heardAt > int64(livenessSilence):
		l.dropped.Add(1)
		p.conn.Close(errLivenessSilent)
	default:
		l.changed = p.out.changes(p.rows, l.changed[:0])
		p.conn.SetOut(appendHeartbeats(p.conn.Out(), wire.TypeHeartbeat, now, l.changed))
	}
}

func (l *liveness) dial(p *pulse, now int64) {
	if now < p.dialAt || p.addr == l.cfg.Advertise {
		return
	}
	p.dialAt = now + int64(p.backoff)
	p.backoff = min(2*p.backoff, maxDialBackoff)
	p.state, p.helloBy = awaitWelcome, now+int64(helloTimeout+transportDialTimeout)
	l.dials.Add(1)
	p.conn = l.loop.Dial(p.addr, p)
}

// tidy closes unused connections, and those that never sent Welcome.
func (l *liveness) tidy(now int64) {
	for addr, p := range l.pulses {
		switch idle := now-p.usedAt > int64(livenessIdle); {
		case p.conn == nil && idle:
			delete(l.pulses, addr)
		case p.conn == nil || !p.conn.Open():
		case idle:
			p.conn.CloseAfterFlush(errLivenessIdle)
		case p.state == awaitWelcome && now > p.helloBy:
			p.conn.Close(transport.ErrDialTimeout)
		}
	}
}

// OnOpen implements transport.Handler.
func (l *liveness) OnOpen(c *transport.Conn) {
	c.SetLimits(0, livenessHardOut)
	if c.Dialled() {
		h := &c.Tag.(*pulse).handshake
		*h = handshake{hello: l.newHello(wire.RoleLiveness)}
		c.SetOut(append(c.Out(), h.hello...))
		return
	}
	p := c.Tag.(*pulse)
	l.links[p.by].Add(1)
	l.heard[c] = p
	c.SetOut(append(c.Out(), p.answer...))
	if p.records != nil {
		c.Protect(p.records)
		p.answer, p.records = nil, nil
	}
	c.SetOut(l.appendWelcome(c.Out(), p.version))
}

// OnFrames implements transport.Handler.
func (l *liveness) OnFrames(c *transport.Conn, buf []byte) (int, error) {
	p := c.Tag.(*pulse)
	rest := buf
	for !c.Backlogged() {
		frame, after, err := wire.Split(rest)
		if err == nil && frame == nil {
			if wire.Need(rest) > maxPulseFrame {
				err = fmt.Errorf("frame of %d bytes, allowed: at most %d", wire.Need(rest), maxPulseFrame)
			} else {
				break
			}
		}
		if err == nil {
			err = l.frame(p, c, frame)
		}
		if err != nil {
			l.goaway(c, err)
			return len(buf) - len(rest), err
		}
		rest = after
		if c.Begins() {
			break
		}
	}
	return len(buf) - len(rest), nil
}

// goaway sends why the connection ends, unless the other side ended it.
func (l *liveness) goaway(c *transport.Conn, err error) {
	if errors.Is(err, transport.ErrPeerClosed) {
		return
	}
	l.badFrames.Add(1)
	c.SetOut(wire.AppendGoaway(c.Out(), &wire.Goaway{Code: wire.GoawayProtocol, Text: []byte(err.Error())}))
}

func (l *liveness) frame(p *pulse, c *transport.Conn, frame []byte) error {
	now := l.now()
	switch t := wire.FrameType(frame); {
	case t == wire.TypeGoaway:
		return saidGoaway(frame)
	case p.state == awaitWelcome:
		records, done, err := p.step(l.trust, c, p.addr, frame)
		if err != nil || done {
			if records != nil {
				c.Protect(records)
			}
			return err
		}
		var m wire.Welcome
		if err := wire.DecodeWelcome(frame, &m); err != nil {
			return err
		}
		if err := errors.Join(checkVersion(&m), p.welcomed(l.trust, c, &m)); err != nil {
			return err
		}
		p.state, p.heardAt, p.member, p.version = ready, now.Mono, string(m.Member), m.Version
		p.out, p.in = rowTable{}, rowTable{}
		l.links[p.by].Add(1)
		return nil
	case wire.Row(t).From&wire.FromPulse == 0:
		return fmt.Errorf("frame type %v, allowed on a liveness connection: %s", t, wire.Allowed(wire.FromPulse))
	}
	p.heardAt, p.backoff = now.Mono, minDialBackoff
	return l.heartbeat(p, c, now, wire.FrameType(frame), frame)
}

// heartbeat handles the other end's rows of all partitions. A Heartbeat arrives on a
// connection that it dialled, and is answered there.
func (l *liveness) heartbeat(p *pulse, c *transport.Conn, now replica.Time, t wire.Type, frame []byte) error {
	if c.Dialled() != (t == wire.TypeHeartbeatAck) {
		return fmt.Errorf("frame type %v, allowed: Heartbeat from the end that dialled, HeartbeatAck from the other", t)
	}
	m := &l.frameIn
	if err := wire.DecodeHeartbeat(frame, t, m); err != nil {
		return err
	}
	if err := p.in.take(m.Rows); err != nil || m.Flags&wire.FlagMore != 0 {
		return err
	}
	l.answers = l.answers[:0]
	for i := range p.in.rows {
		row := &p.in.rows[i]
		v := l.vitalsOf(row.Partition)
		switch {
		case v == nil:
		case t == wire.TypeHeartbeatAck:
			v.Answered(now, m.SentNs, row)
		default:
			if answer, ok := v.Hear(now, row); ok {
				l.answers = append(l.answers, answer)
			}
		}
	}
	if t == wire.TypeHeartbeat {
		l.changed = p.out.changes(l.answers, l.changed[:0])
		c.SetOut(appendHeartbeats(c.Out(), wire.TypeHeartbeatAck, m.SentNs, l.changed))
	}
	return nil
}

// hold starts beating for a partition, replacing its earlier vitals; from the data loop.
func (l *liveness) hold(id wire.PartitionID, v *replica.Vitals) {
	list := slices.Clone(*l.vitals.Load())
	at, there := slices.BinarySearchFunc(list, id, compareBeating)
	if !there {
		list = slices.Insert(list, at, beating{})
	}
	list[at] = beating{id, v}
	l.vitals.Store(&list)
}

// drop stops beating for a partition; from the data loop.
func (l *liveness) drop(id wire.PartitionID) {
	list := slices.DeleteFunc(slices.Clone(*l.vitals.Load()), func(b beating) bool { return b.id == id })
	l.vitals.Store(&list)
}

// vitalsOf is nil for a partition that this node does not hold.
func (l *liveness) vitalsOf(id wire.PartitionID) *replica.Vitals {
	list := *l.vitals.Load()
	if at, there := slices.BinarySearchFunc(list, id, compareBeating); there {
		return list[at].v
	}
	return nil
}

func compareBeating(b beating, id wire.PartitionID) int { return cmp.Compare(b.id, id) }

// OnClose implements transport.Handler. The end of a connection is not evidence of a
// death, the data connection is; it is redialled with the next beacon.
func (l *liveness) OnClose(c *transport.Conn, err error) {
	p := c.Tag.(*pulse)
	delete(l.heard, c)
	if errors.Is(err, peerkey.ErrRecord) {
		l.badFrames.Add(1)
	}
	if p.state == ready {
		l.links[p.by].Add(-1)
	}
	if p.conn != nil { // dialled
		p.conn, p.state = nil, awaitWelcome
	}
	l.log.Debug("liveness connection closed", "remote", c.Remote(), "dialled", c.Dialled(), "reason", err)
}

// OnWakeEnd implements transport.Handler.
func (l *liveness) OnWakeEnd() {}

// snapshot is for metrics; from any thread.
func (l *liveness) snapshot() (metrics.Liveness, metrics.Thread) {
	l.threadMu.Lock()
	defer l.threadMu.Unlock()
	links := map[string]int{}
	for by := range l.links {
		links[protection(by).String()] = int(l.links[by].Load())
	}
	return metrics.Liveness{Links: links, BadFrames: l.badFrames.Load(), Dropped: l.dropped.Load(), Dials: l.dials.Load()}, l.thread
}
