package node

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Clients may follow the log of a partition as it grows, at any replica in sync. Each stream has a
// goroutine of its own, which reads the store beside the loop and copies entries; the loop takes a finished frame over
// from it, and does nothing for streams while an order comes. What a stream may have on its way is bounded by its
// window, and the windows of all together by the memory that clients have: a client that does not take its stream
// in costs no more than that.

const (
	maxStreams     = 1024    // of a node
	clientStreams  = 256     // of one client
	connStreams    = 64      // of one connection
	maxWindow      = 4 << 20 // bytes of one stream
	minWindow      = 64 << 10
	windowsPart    = 4 // all windows together are this part of what clients may take
	windowsOfOne   = 2 // those of one client are this part of all
	followTurns    = 4 // frames of streams that a wake-up of the loop takes over
	maxFollowFrame = wire.FollowEntriesFixed + wire.MaxFollowBytes
)

// follows are the streams of all clients. Of the data loop, but for turns.
type follows struct {
	windows  int64 // bytes that all windows may have together
	used     int64
	streams  int
	begun    uint64                    // streams since the node started
	stats    metrics.Follow            // but Streams and Windows
	ofClient map[uint64]*clientFollows // by link.client
	turns    chan []byte               // buffers; who has one may hand the loop a frame
	passes   *passes
}

type clientFollows struct {
	streams int
	used    int64
}

func newFollows(plan memoryPlan) follows {
	f := follows{windows: max(plan.clients/windowsPart, minWindow), ofClient: map[uint64]*clientFollows{}, turns: make(chan []byte, followTurns),
		passes: &passes{free: slotsBeside()}}
	for range followTurns {
		f.turns <- nil
	}
	return f
}

// follow begins a stream of entries, or says why it does not.
func (c *clients) follow(l *link, frame []byte) error {
	var m wire.Follow
	if err := wire.DecodeFollow(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	if len(m.Name) > 0 && l.may&access.Sink == 0 {
		return c.lacks(l, wire.TypeFollow, access.Sink, frame)
	}
	return c.startStream(l, frame, &m, 0)
}

// stream begins a stream of orders, executions or both.
func (c *clients) stream(l *link, frame []byte) error {
	var m wire.Stream
	if err := wire.CheckStream(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	return c.startStream(l, frame, &wire.Follow{ReqID: m.ReqID, FromSeq: m.FromSeq, FromHash: m.FromHash, Lineage: m.Lineage, Window: m.Window}, m.What)
}

// streamSelect changes what a stream sends. It may have ended meanwhile.
func (c *clients) streamSelect(l *link, frame []byte) error {
	var m wire.StreamSelect
	if err := wire.CheckStreamSelect(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	switch w := l.streamOf(m.ReqID); {
	case w == nil:
	case w.what != wire.StreamBySelect:
		return c.badFrame(l, wire.GoawayProtocol, fmt.Sprintf("frame %s: reqID is %d, allowed: that of a Stream whose field what is %d", wire.TypeStreamSelect, m.ReqID, wire.StreamBySelect))
	default:
		frame = slices.Clone(frame)
		w.asked.Store(&frame)
		w.log.Nudge()
	}
	return nil
}

// startStream begins a stream. What it is to send is read beside the loop; what is the field of a Stream.
func (c *clients) startStream(l *link, frame []byte, m *wire.Follow, what uint8) error {
	t := wire.FrameType(frame)
	p := c.parts.at(wire.FramePartition(frame))
	switch {
	case p == nil:
		return c.directory.notHere(l, t, frame)
	case p.ended:
		return c.directory.notServed(l, p, t, frame)
	case l.streamOf(m.ReqID) != nil:
		return c.badFrame(l, wire.GoawayProtocol, fmt.Sprintf("frame %s: reqID is %d, allowed: one that no stream of the connection has", t, m.ReqID))
	case len(m.Name) > 0 && !slices.Contains(c.cfg.ExternalSinks, string(m.Name)):
		return c.refuseFollow(l, p, t, m, wire.CodeReaderUnknown, 0, 0, replica.UnknownReader(string(m.Name), c.cfg.ExternalSinks))
	case what&wire.StreamExecutions != 0 && c.cfg.Execution == nil:
		return c.refuseFollow(l, p, t, m, wire.CodeUnsupported, 0, 0, "the partition stores orders and does not match: it has no executions")
	}
	from, end := p.replica.FollowFrom(m)
	if end != nil {
		l.conn.SetOut(wire.AppendFollowEnd(l.conn.Out(), p.id, end))
		return nil
	}
	kept := keptOf(frame, what)
	window, full, have, limit := c.follows.grant(l, int64(m.Window), kept)
	if window == 0 {
		c.follows.stats.Rejected++
		return c.refuseFollow(l, p, t, m, wire.CodeOverloaded, have, limit, fmt.Sprintf("%s %d, allowed: %d; end some, or follow at another replica", full, have, limit))
	}
	w := &follower{p: p, inc: p.inc, l: l, client: l.client, reqID: m.ReqID, name: string(m.Name), what: what, request: slices.Clone(frame), granted: window, kept: kept}
	return w.start(from)
}

// grant says how large the window of a new stream may be, beside which kept bytes are kept for it. 0: there is no room, and
// what there is too much of.
func (f *follows) grant(l *link, window, kept int64) (granted int64, what string, have, limit int64) {
	mine := f.ofClient[l.client]
	if mine == nil {
		mine = &clientFollows{}
	}
	for _, bound := range []struct {
		what        string
		have, limit int64
	}{
		{"streams of this connection:", int64(len(l.streams)), connStreams},
		{"streams of this client on the node:", int64(mine.streams), clientStreams},
		{"streams of all clients on the node:", int64(f.streams), maxStreams},
	} {
		if bound.have >= bound.limit {
			return 0, bound.what, bound.have, bound.limit
		}
	}
	wanted := min(window, maxWindow)
	least := min(wanted, minWindow) + kept
	switch ofOne := f.windows / windowsOfOne; {
	case mine.used+least > ofOne:
		return 0, "bytes of windows of this client on the node:", mine.used, ofOne
	case f.used+least > f.windows:
		return 0, "bytes of windows of all clients on the node:", f.used, f.windows
	default:
		return min(wanted, ofOne-mine.used-kept, f.windows-f.used-kept), "", 0, 0
	}
}

func (c *clients) refuseFollow(l *link, p *partition, t wire.Type, m *wire.Follow, code wire.Code, have, limit int64, text string) error {
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), p.id, &wire.Reject{RequestID: m.ReqID, Code: code, ForType: t, Detail: uint64(have), Limit: uint64(limit), Text: []byte(text)}))
	return nil
}

// count keeps the books when a stream begins, 1, and ends, -1.
func (f *follows) count(w *follower, n int) {
	mine := f.ofClient[w.client]
	if mine == nil {
		mine = &clientFollows{}
		f.ofClient[w.client] = mine
	}
	mine.streams, f.streams = mine.streams+n, f.streams+n
	bytes := int64(n) * (w.granted + w.kept)
	mine.used, f.used = mine.used+bytes, f.used+bytes
	w.l.windows += int64(n) * w.granted
	w.l.fitSendBuffer()
	if mine.streams == 0 {
		delete(f.ofClient, w.client)
	}
}

// fitSendBuffer lets the kernel hold what the windows of the connection's streams allow to be
// on their way: over a long round trip a smaller buffer would be the window.
func (l *link) fitSendBuffer() { l.conn.SetSendBuffer(clientSendBuffer + int(l.windows)) }

// snapshot copies the counters; on the loop.
func (f *follows) snapshot() metrics.Follow {
	s := f.stats
	s.Streams, s.Windows = f.streams, f.used
	return s
}

// followCredit gives a stream room, or ends it. It may have ended meanwhile.
func (c *clients) followCredit(l *link, frame []byte) error {
	var m wire.FollowCredit
	if err := wire.DecodeFollowCredit(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	w := l.streamOf(m.ReqID)
	switch {
	case w == nil:
	case m.Window == 0:
		w.end(wire.EndStopped, "the follower asked for it")
	default:
		w.window.Store(min(int64(m.Window), w.granted))
		w.credited.Store(max(w.credited.Load(), m.Through))
		w.log.Nudge()
	}
	return nil
}

// stillMay ends the streams of a client that it may not have any more.
func (c *clients) stillMay(l *link) {
	for _, q := range l.questions {
		if l.may&access.Query == 0 {
			q.stop(wire.QueryCancelled)
		}
	}
	if l.may&access.Read == 0 {
		l.endMaps()
	}
	for _, w := range slices.Clone(l.streams) {
		if l.may&access.Watch == 0 || w.name != "" && l.may&access.Sink == 0 {
			w.end(wire.EndNotPermitted, fmt.Sprintf("%s may %s on grid %q now", l.who, l.may, c.cfg.Grid))
		}
	}
}

func (l *link) streamOf(reqID uint64) *follower {
	for _, w := range l.streams {
		if w.reqID == reqID {
			return w
		}
	}
	return nil
}

// tellFollowed lets the replica know whether streams wait for what is committed. Those of readers with a name collect
// entries for longer than a backup waits for the next one.
func (p *partition) tellFollowed() {
	p.replica.SetFollowed(slices.ContainsFunc(p.inc.followers, func(w *follower) bool { return w.name == "" }))
}

// tellFollowers ends the streams of a replica that is not in sync any more.
func (p *partition) tellFollowers() {
	if len(p.inc.followers) == 0 {
		return
	}
	serves := p.status.Role == replica.RolePrimary || p.status.Role == replica.RoleBackup
	for _, w := range slices.Clone(p.inc.followers) {
		if serves {
			w.lineage.Store(uint32(p.replica.Lineage()))
		} else {
			w.end(wire.EndBehind, fmt.Sprintf("%s is %s here now, allowed: to follow the primary, or a backup", p.id, p.status.Role))
		}
	}
}
