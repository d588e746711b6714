package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// prober sends confirmed reads and a few orders to one node, primary or
// not, without waiting for answers: a stopped node has many of them in its socket when it resumes.
// It never sends anything twice, so its answers are of that node alone.
type prober struct {
	t       *Traffic
	number  int // in history.Nodes
	node    history.Node
	streams []*records // one per partition
	makers  []maker
	rng     *rand.Rand
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex // guards what follows, between sender and receiver
	reads   []history.Read
	refused int64
}

// proberLink is one connection.
type proberLink struct {
	c        net.Conn
	reqID    uint64
	reads    map[uint64]history.Read // unanswered, by request
	sessions []proberSession         // by partition, as streams
	orders   []map[proberOrder]int64 // unanswered, by partition: their index
	opening  map[uint64]int          // OpenSession requests, to the partition's place
}

// proberSession is a session on the link.
type proberSession struct {
	open      bool
	askedAt   int64
	slot, gen uint32
	next      uint64
}

// proberOrder is an order to match answers with. A session that was given up may still be answered
// for, and such an answer matters most.
type proberOrder struct {
	slot uint32
	n    uint64
}

const (
	reconnectDelay = 200 * time.Millisecond
	// maxUnanswered bounds the requests to a stopped node.
	maxUnanswered = 8192
)

func newProber(t *Traffic, number int, n history.Node) *prober {
	in := &prober{t: t, number: number, node: n, done: make(chan struct{}),
		rng: rand.New(rand.NewPCG(t.cfg.Seed, uint64(number)))}
	run := fixorder.NewRun()
	for i, p := range t.cfg.Partitions {
		id := fixorder.ID{Run: run, Probe: i}
		in.streams = append(in.streams, &records{id: id, partition: p, node: number})
		m, err := t.cfg.maker(id, p)
		if err != nil {
			panic(err) // Watch bounds the number
		}
		in.makers = append(in.makers, m)
	}
	return in
}

func (in *prober) start() {
	var ctx context.Context
	ctx, in.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(in.done)
		for ctx.Err() == nil {
			in.visit(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(reconnectDelay):
			}
		}
	}()
}

func (in *prober) stop() {
	in.cancel()
	<-in.done
}

// visit serves one connection until it ends.
func (in *prober) visit(ctx context.Context) {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", in.node.Address)
	if err != nil {
		return
	}
	l := &proberLink{c: c, reads: map[uint64]history.Read{}, sessions: make([]proberSession, len(in.streams)), opening: map[uint64]int{}}
	for range in.streams {
		l.orders = append(l.orders, map[proberOrder]int64{})
	}
	defer func() { _ = c.Close() }()
	hello := wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient,
		Grid: []byte(in.t.cfg.Grid), Member: []byte("robustness-direct")})
	if _, err := c.Write(hello); err != nil {
		return
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		in.receive(l)
	}()
	in.send(ctx, l, received)
	_ = c.Close()
	<-received
	in.lost(l)
}

// lost ends unanswered requests of a link: orders have an unknown fate, reads are ignored.
func (in *prober) lost(l *proberLink) {
	for p := range l.orders {
		for _, index := range l.orders[p] {
			o := in.streams[p].at(index)
			o.T3, o.Fate = clock.Now(), load.Unknown
		}
	}
}

func (in *prober) send(ctx context.Context, l *proberLink, received <-chan struct{}) {
	rate := max(1, in.t.cfg.Reads+in.t.cfg.Orders)
	pace := time.NewTicker(time.Second / time.Duration(rate))
	defer pace.Stop()
	var buf []byte
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-received:
			return
		case <-pace.C:
		}
		if in.t.stopped.Load() {
			// Requests in flight may still be answered; no new ones are sent.
			continue
		}
		p := in.rng.IntN(len(in.streams))
		in.mu.Lock()
		if in.rng.IntN(rate) < in.t.cfg.Orders {
			buf = in.appendOrder(buf[:0], l, p)
		} else {
			buf = in.appendRead(buf[:0], l, p)
		}
		in.mu.Unlock()
		if len(buf) == 0 {
			continue
		}
		// The socket of a stopped node is full: retry later.
		_ = l.c.SetWriteDeadline(time.Now().Add(20 * time.Second))
		if _, err := l.c.Write(buf); err != nil {
			return
		}
	}
}

func (in *prober) appendRead(dst []byte, l *proberLink, p int) []byte {
	stream := in.t.streamOf(in.streams[p].partition)
	if stream < 0 || len(l.reads) >= maxUnanswered || in.t.cfg.MaxReads > 0 && in.t.reads.Load() >= in.t.cfg.MaxReads {
		return dst
	}
	index, ok := in.t.streams[stream].pick(in.rng)
	if !ok {
		return dst
	}
	in.t.reads.Add(1)
	l.reqID++
	key := in.t.streams[stream].id.ClOrdID(index)
	l.reads[l.reqID] = history.Read{Call: clock.Now(), Partition: in.streams[p].partition, Stream: stream, Index: index, Node: in.number}
	return wire.AppendGet(dst, in.streams[p].partition, &wire.Get{ReqID: l.reqID, By: wire.ByClOrdID, Mode: wire.ModeConfirmed, Key: []byte(key)})
}

// appendOrder submits, or opens a session first.
func (in *prober) appendOrder(dst []byte, l *proberLink, p int) []byte {
	s, now := &l.sessions[p], clock.Now()
	if !s.open {
		if now-s.askedAt < int64(reconnectDelay) {
			return dst
		}
		s.askedAt = now
		l.reqID++
		l.opening[l.reqID] = p
		return wire.AppendOpenSession(dst, in.streams[p].partition, &wire.OpenSession{ReqID: l.reqID, Attempt: 1, IDHi: in.rng.Uint64() | 1, IDLo: in.rng.Uint64()})
	}
	if len(l.orders[p]) >= 500 { // the node keeps the replies of 512
		return dst
	}
	index, o := in.streams[p].add()
	o.T1, o.T2 = now, now
	fix := in.makers[p].Make(index, index+1, clock.Wall(now), clock.Wall(now))
	l.orders[p][proberOrder{s.slot, s.next}] = index
	dst = wire.AppendSubmit(dst, in.streams[p].partition, &wire.Submit{Slot: s.slot, Generation: s.gen, ClientSeq: s.next, Payload: fix})
	s.next++
	return dst
}

func (in *prober) receive(l *proberLink) {
	buf, have := make([]byte, 64<<10), 0
	for {
		n, err := l.c.Read(buf[have:])
		now := clock.Now()
		have += n
		rest := buf[:have]
		for {
			frame, after, e := wire.Split(rest)
			if e != nil {
				return
			}
			if frame == nil {
				break
			}
			rest = after
			in.mu.Lock()
			e = in.frame(l, frame, now)
			in.mu.Unlock()
			if e != nil {
				return
			}
		}
		if need := wire.Need(rest); need > len(buf) {
			buf = append(make([]byte, 0, need), rest...)[:need]
			have = len(rest)
		} else {
			have = copy(buf, rest)
		}
		if err != nil {
			return
		}
	}
}

var errGoaway = errors.New("the node says goodbye")

func (in *prober) frame(l *proberLink, f []byte, now int64) error {
	switch wire.FrameType(f) {
	case wire.TypeGetReply:
		var m wire.GetReply
		if err := wire.DecodeGetReply(f, &m); err != nil {
			return err
		}
		return in.readAnswered(l, &m, now)
	case wire.TypeAck:
		var m wire.Ack
		if err := wire.DecodeAck(f, &m); err != nil {
			return err
		}
		if o := in.answered(l, f, m.Slot, m.ClientSeq); o != nil {
			o.T3, o.Fate = now, load.Acked
			o.Seq, o.Epoch, o.Copies, o.Hash, o.Lineage = m.Seq, m.Epoch, m.Copies, m.Hash, m.Lineage
		}
	case wire.TypeSessionOpened:
		var m wire.SessionOpened
		if err := wire.DecodeSessionOpened(f, &m); err != nil {
			return err
		}
		if p, ok := l.opening[m.ReqID]; ok {
			delete(l.opening, m.ReqID)
			in.slotReused(l, p, m.Slot)
			l.sessions[p] = proberSession{open: true, slot: m.Slot, gen: m.Generation, next: m.LastClientSeq + 1}
		}
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		if err := wire.DecodeNotPrimary(f, &m); err != nil {
			return err
		}
		in.refusal(l, f, m.ForType, m.Slot, m.RequestID, load.Unknown, now)
	case wire.TypeReject:
		var m wire.Reject
		if err := wire.DecodeReject(f, &m); err != nil {
			return err
		}
		in.refusal(l, f, m.ForType, m.Slot, m.RequestID, load.Rejected, now)
	case wire.TypeGoaway:
		return errGoaway
	}
	return nil
}

// slotReused gives up the orders of an earlier session in the slot: answers would be ambiguous.
func (in *prober) slotReused(l *proberLink, p int, slot uint32) {
	for key, index := range l.orders[p] {
		if key.slot == slot {
			o := in.streams[p].at(index)
			o.T3, o.Fate = clock.Now(), load.Unknown
			delete(l.orders[p], key)
		}
	}
}

// refusal of a request. NotPrimary does not decide the fate of an order: it may have been prepared,
// and the next primary may hold it.
func (in *prober) refusal(l *proberLink, f []byte, forType wire.Type, slot uint32, id uint64, fate load.Fate, now int64) {
	switch forType {
	case wire.TypeSubmit:
		if o := in.answered(l, f, slot, id); o != nil {
			o.T3, o.Fate = now, fate
			if s := &l.sessions[in.place(f)]; s.slot == slot {
				s.open = false // its numbers have a gap now
			}
		}
	case wire.TypeOpenSession:
		delete(l.opening, id)
	case wire.TypeGet:
		if _, ok := l.reads[id]; ok {
			delete(l.reads, id)
			in.refused++
		}
	}
}

func (in *prober) place(f []byte) int {
	for i, s := range in.streams {
		if s.partition == wire.FramePartition(f) {
			return i
		}
	}
	return 0
}

// answered finds the order of an answer.
func (in *prober) answered(l *proberLink, f []byte, slot uint32, clientSeq uint64) *load.Order {
	p, key := in.place(f), proberOrder{slot, clientSeq}
	index, ok := l.orders[p][key]
	if !ok {
		return nil
	}
	delete(l.orders[p], key)
	return in.streams[p].at(index)
}

func (in *prober) readAnswered(l *proberLink, m *wire.GetReply, now int64) error {
	r, ok := l.reads[m.ReqID]
	if !ok {
		return fmt.Errorf("answer to read %d, which was not sent", m.ReqID)
	}
	delete(l.reads, m.ReqID)
	r.Return, r.Epoch, r.CommitSeq = now, m.Epoch, m.CommitSeq
	if m.Status == wire.GetFound {
		if len(m.Entry) < order.HeaderSize {
			return fmt.Errorf("answer to read %d: an entry of %d bytes", m.ReqID, len(m.Entry))
		}
		r.Seq = binary.LittleEndian.Uint64(m.Entry[8:])
	}
	in.reads = append(in.reads, r)
	return nil
}
