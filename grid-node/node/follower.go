package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// follower is one stream. It holds the log where it reads it, for as long as it takes to copy a frame. While its
// client gives it no room, or others have their turn, it holds nothing: what it wants next may be freed meanwhile, and then
// it ends.
type follower struct {
	p       *partition
	inc     *incarnation
	l       *link
	client  uint64 // l's
	reqID   uint64
	name    string // of a reader of the configuration, or ""
	what    uint8  // of a Stream; 0: it is a Follow
	request []byte // that began it
	granted int64  // the largest window
	kept    int64  // bytes of what it is asked to send
	cancel  context.CancelFunc
	ended   bool // of the data loop

	credited atomic.Uint64 // frames through this entry are taken in
	window   atomic.Int64
	lineage  atomic.Uint32
	asked    atomic.Pointer[[]byte] // StreamSelect that was not looked at

	// Of its goroutine.
	log       *feed.Reader
	sel       selection
	waits     bool              // for a StreamSelect
	found     bool              // the next entry is sent
	selected  wire.StreamSelect // to be told; Version and QuietMs
	tells     bool
	quiet     time.Duration // how long it says nothing while no entry matches
	next      uint64        // first entry that was not examined
	from      uint64        // first entry that no frame covers
	hash      uint64        // of entry next-1
	held      bool          // the log holds from on
	passed    bool          // it has one of follows.passes
	begun     bool          // the first frame is out
	toldAt    time.Time
	full      bool // the last frame had no room for what is committed
	sent      []sentFrame
	unread    int64 // bytes of sent
	frame     []byte
	executed  *executedTape // nil unless executions are sent
	matched   int           // entries in frame
	examined  uint64        // those looked at since the frame before
	crowded   bool          // the connection has much output that is not written
	patience  time.Duration
	taken     chan bool // the loop has looked at frame, or at from
	giveFrame func()
	takeHold  func()
	takeWhole func()
	lookAgain func()
}

// sentFrame is a frame that is not credited.
type sentFrame struct {
	through uint64
	bytes   int64
}

const (
	// quietFrame is how long a stream with a filter says nothing while no entry matches it, unless it asked for less.
	quietFrame = 100 * time.Millisecond
	// crowdedOut bytes of output that the kernel has not taken are enough: a stream waits, longer each time, before it
	// adds to them. More would be memory that the process takes anew, on the loop, for a client that does not read.
	crowdedOut   = 256 << 10
	crowdedFirst = time.Millisecond
	crowdedLast  = 64 * time.Millisecond
	// collect is how long a stream to a sink waits after a frame that was not full, so that the next one has more than
	// an entry: a sink collects batches for longer than that, and frames cost the loop and the sink by their number.
	collect = 2 * time.Millisecond
	// examineStep entries are examined between two looks whether the stream has ended.
	examineStep = 4096
	// passEntries, or more, to look at need a turn of follows.passes; so does a request of passBytes.
	passEntries = 256
	passBytes   = 4 << 10
	// frameStep entries that are not sent are looked at to make a frame fuller.
	frameStep = 1024
)

// start starts a stream from an entry on; on the loop, which reads where the log begins.
func (w *follower) start(from uint64) error {
	p, l := w.p, w.l
	p.clients.follows.begun++
	log, err := p.inc.feed.Reader("stream " + strconv.FormatUint(p.clients.follows.begun, 10))
	if err != nil {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	ctx, cancel := context.WithCancel(p.inc.ctx)
	w.cancel, w.log, w.next, w.from, w.hash, w.taken = cancel, log, from, from, p.store.HashAt(from-1), make(chan bool, 1)
	w.waits, w.quiet = w.what == wire.StreamBySelect, quietFrame
	if w.what&wire.StreamExecutions != 0 || w.waits && p.cfg.Execution != nil {
		w.executed = p.newExecutedTape(from)
		w.executed.log = log
	}
	w.window.Store(w.granted)
	w.lineage.Store(uint32(p.replica.Lineage()))
	w.giveFrame, w.takeHold, w.lookAgain, w.patience = w.onGive, w.onHold, w.onLook, crowdedFirst
	w.takeWhole = w.holdWhole
	if at := slices.IndexFunc(p.inc.followers, func(o *follower) bool { return w.name != "" && o.name == w.name }); at >= 0 {
		p.inc.followers[at].end(wire.EndReplaced, fmt.Sprintf("%s follows %s as reader %q from %s now", l.name, p.id, w.name, l.conn.Remote()))
	}
	p.inc.followers, l.streams = append(p.inc.followers, w), append(l.streams, w)
	p.clients.follows.count(w, 1)
	w.p.tellFollowed()
	log.Hold(from)
	w.held = true
	p.inc.wg.Go(func() { w.run(ctx) })
	return nil
}

// end ends the stream, on the loop, and says why; without a text its connection is gone.
func (w *follower) end(reason wire.EndReason, text string) {
	w.endAt(&wire.FollowEnd{ReqID: w.reqID, Reason: reason, Text: []byte(text)})
}

func (w *follower) endAt(m *wire.FollowEnd) {
	if w.ended {
		return
	}
	w.ended = true
	w.cancel()
	mine := func(o *follower) bool { return o == w }
	w.inc.followers, w.l.streams = slices.DeleteFunc(w.inc.followers, mine), slices.DeleteFunc(w.l.streams, mine)
	w.p.clients.follows.count(w, -1)
	w.p.tellFollowed()
	if !w.l.conn.Open() {
		w.p.clients.follows.stats.Ends[0]++
	} else {
		w.p.clients.follows.stats.Ends[m.Reason]++
		w.l.conn.SetOut(wire.AppendFollowEnd(w.l.conn.Out(), w.p.id, m))
	}
}

// run sends until ctx ends: with the stream, or with the incarnation.
func (w *follower) run(ctx context.Context) {
	w.sel, w.request = w.selection(ctx, w.request), nil
	for ctx.Err() == nil {
		w.takeCredit()
		w.takeSelection(ctx)
		collects := w.collects(time.Now())
		switch {
		case w.waits && w.begun, w.unread >= w.window.Load():
			w.letGo()
			w.log.Await(ctx, feed.Never, 0)
		case w.crowded:
			w.letGo()
			w.log.Await(ctx, feed.Never, w.patience)
			w.patience = min(2*w.patience, crowdedLast)
			w.onLoop(w.lookAgain)
		case w.needsPass():
			w.takePass(ctx, w.log.Committed()-w.next)
		case !w.held:
			w.onLoop(w.takeHold)
		case collects > 0:
			w.log.Await(ctx, feed.Never, collects)
		case w.needsWhole():
			w.onLoop(w.takeWhole)
			w.executed.whole = w.held
		case w.examine(ctx):
			w.send(ctx)
		default:
			w.log.Await(ctx, w.next, w.due())
		}
	}
	w.givePass()
	w.log.Hold(0)
	if !w.p.loop.Post(func() { // which takes readers out of the feed without waiting for those that end
		w.log.Close()
		w.end(wire.EndLeaving, "the replica stops serving here: go on at another")
	}) {
		w.log.Close()
	}
}

// needsPass reports whether the stream has to have one of follows.passes before entries are looked at.
func (w *follower) needsPass() bool {
	return !w.passed && !w.waits && !w.tells && !w.sel.all() && w.next+passEntries <= w.log.Committed()
}

// takePass takes one, for so many entries. It lets the log go while it waits.
func (w *follower) takePass(ctx context.Context, left uint64) {
	all := w.p.clients.follows.passes
	if w.passed = all.tryTake(); !w.passed {
		w.letGo()
		w.passed = all.take(ctx, w.client, left)
	}
}

func (w *follower) givePass() {
	if w.passed {
		w.passed = false
		w.p.clients.follows.passes.give()
	}
}

// selection makes what the stream sends of a request.
func (w *follower) selection(ctx context.Context, frame []byte) (s selection) {
	if len(frame) >= passBytes {
		if !w.passed {
			w.takePass(ctx, 0)
		}
		defer w.givePass()
		if !w.passed {
			return s
		}
	}
	return selectionOf(frame)
}

// takeSelection looks at what the client wants from the next entry on.
func (w *follower) takeSelection(ctx context.Context) {
	if w.executed != nil && w.executed.part > 0 { // a part of that entry is on its way
		return
	}
	if frame := w.asked.Swap(nil); frame != nil && wire.CheckStreamSelect(*frame, &w.selected) == nil {
		w.sel = selection{chosen: &rows{}} // what was asked for before makes room
		w.sel, w.waits, w.tells = w.selection(ctx, *frame), false, true
		w.quiet = time.Duration(w.selected.QuietMs) * time.Millisecond
	}
}

// collects returns how long to wait before the next frame. Followers that are no readers of the configuration, such as
// gateways, get each entry when it is committed.
func (w *follower) collects(now time.Time) time.Duration {
	if w.name == "" || !w.begun || w.full {
		return 0
	}
	return collect - now.Sub(w.toldAt)
}

// takeCredit forgets frames that the client has taken in.
func (w *follower) takeCredit() {
	credited, n := w.credited.Load(), 0
	for n < len(w.sent) && w.sent[n].through <= credited {
		w.unread -= w.sent[n].bytes
		n++
	}
	w.sent = slices.Delete(w.sent, 0, n)
}

// letGo is for a stream that may not go on for now.
func (w *follower) letGo() {
	w.givePass()
	if w.held {
		w.held = false
		w.holdFrom(0)
	}
}

// onHold has the log hold what the stream wants next, or ends the stream if that is freed; on the loop.
func (w *follower) onHold() {
	base, hash := w.inc.store.Base()
	if w.ended || w.next > base { // those between from and next were looked at
		w.log.Hold(w.next)
		w.taken <- true
		return
	}
	w.endAt(&wire.FollowEnd{ReqID: w.reqID, Reason: wire.EndSnapshotRequired, Seq: base + 1, Hash: hash,
		Text: fmt.Appendf(nil, "entry %d was freed while the follower gave no room, or others had their turn, as all up to %d: follow from entry %d on; what is freed is downstream", w.next, base, base+1)})
	w.taken <- false
}

// onLoop has the loop call f, which answers by taken. When the node ends it may not.
func (w *follower) onLoop(f func()) {
	if !w.p.loop.Post(f) {
		w.cancel()
		return
	}
	select {
	case w.held = <-w.taken:
	case <-w.p.ctx.Done():
		w.cancel()
	}
}

// examine looks at entries until one has to be sent, and reports whether a frame is due.
func (w *follower) examine(ctx context.Context) bool {
	defer w.givePass()
	committed := w.log.Committed()
	if !w.passed {
		committed = min(committed, w.next+passEntries-1)
	}
	w.found = false
	if w.waits || w.tells || w.sel.all() {
		return !w.begun || w.tells || w.next <= committed
	}
	for step := 0; w.next <= committed && step < examineStep && ctx.Err() == nil; step++ {
		if w.found = w.matches(w.log.Read(w.next)); w.found {
			return true
		}
		w.pass()
	}
	if w.next > w.from { // what was examined need not stay
		last := w.log.Read(w.next - 1)
		w.hash = order.Hash(last)
		w.holdFrom(w.next)
	}
	return !w.begun || w.next > w.from && time.Since(w.toldAt) >= w.quiet
}

// pass passes over the next entry.
func (w *follower) pass() {
	w.next++
	w.examined++
	if w.executed != nil {
		w.executed.tape.Skip()
	}
}

// matches reports whether something of the next entry is sent.
func (w *follower) matches(entry []byte) bool {
	return w.sel.takes(entry) || w.executed != nil && w.sel.executions() && w.executed.selects(&w.sel, entry)
}

// due is how long the stream waits at most for the next entry.
func (w *follower) due() time.Duration {
	if w.next == w.from { // a frame has covered all that was examined
		return 0
	}
	return max(w.quiet-time.Since(w.toldAt), time.Millisecond)
}

// send hands the loop a frame, when it is this stream's turn.
func (w *follower) send(ctx context.Context) {
	var buf []byte
	select {
	case buf = <-w.p.clients.follows.turns:
	case <-ctx.Done():
		return
	}
	if w.what == 0 {
		w.frame = w.fill(buf[:0])
	} else {
		buf = buf[:0]
		if w.tells {
			buf = wire.AppendStreamSelected(buf, w.p.id, &wire.StreamSelected{ReqID: w.reqID, Version: w.selected.Version, From: w.next})
			w.tells = false
		}
		w.frame = w.fillPart(buf)
	}
	size := int64(len(w.frame))
	w.holdFrom(w.next)
	w.sent = append(w.sent, sentFrame{through: w.next - 1, bytes: size})
	w.unread += size
	w.from, w.begun, w.toldAt = w.next, true, time.Now()
	w.onLoop(w.giveFrame)
	buf, w.frame = w.frame, nil
	if cap(buf) > 2*maxFollowFrame {
		buf = nil
	}
	w.p.clients.follows.turns <- buf
}

// onGive takes a frame over, on the loop.
func (w *follower) onGive() {
	if !w.ended && w.l.conn.Open() {
		w.l.conn.SetOut(append(w.l.conn.Out(), w.frame...))
		w.l.conn.Spend(requestWork + len(w.frame))
		stats := &w.p.clients.follows.stats
		stats.Entries, stats.Bytes = stats.Entries+uint64(w.matched), stats.Bytes+uint64(len(w.frame))
		stats.Examined += w.examined
	}
	w.examined = 0
	w.crowded = w.l.conn.Buffered() > crowdedOut
	w.taken <- true
}

// onLook looks whether the connection has written its output, on the loop.
func (w *follower) onLook() {
	if w.crowded = w.l.conn.Buffered() > crowdedOut; !w.crowded {
		w.patience = crowdedFirst
	}
	w.taken <- w.held
}
