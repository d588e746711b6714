package fix

import (
	"fmt"
	"slices"
	"time"
)

// gap is what is missing of the other side's messages, and those that came behind it.
type gap struct {
	end    uint64 // last missing number, 0: there is no gap
	upTo   uint64 // last number asked for
	filled uint64 // NewSeqNo of the last gap fill
	at     int64  // Mono of the ResendRequest
	tries  int
	held   []held // in order of their numbers
	bytes  int
}

// held is a message behind a gap. Without bytes: it was handled, and takes its number.
type held struct {
	seq uint64
	raw []byte
}

const maxTries = 3 // ResendRequests for one gap

// hold keeps a message, if there is room. What there is no room for is asked for again.
func (g *gap) hold(l *Limits, seq uint64, raw []byte) {
	if len(g.held) >= l.GapMessages || g.bytes+len(raw) > l.GapBytes {
		return
	}
	i, there := slices.BinarySearchFunc(g.held, seq, func(h held, seq uint64) int {
		switch {
		case h.seq < seq:
			return -1
		case h.seq > seq:
			return 1
		}
		return 0
	})
	if !there {
		g.held = slices.Insert(g.held, i, held{seq: seq, raw: slices.Clone(raw)})
		g.bytes += len(raw)
	}
}

// tooHigh keeps a message until those before it are there.
func (s *Session) tooHigh(now Now, m *Message) {
	s.gap.hold(&s.a.cfg.Limits, m.seq, m.raw)
	s.openGap(now, m.seq)
}

// openGap asks for the numbers up to seq, unless that was done.
func (s *Session) openGap(now Now, seq uint64) {
	if s.gap.end == 0 {
		s.gap.end, s.gap.tries = seq-1, 0
		s.askAgain(now)
	}
}

// askAgain sends a ResendRequest for what is missing, or a part of it.
func (s *Session) askAgain(now Now) {
	g, chunk := &s.gap, s.profile.ResendChunk
	in, _ := s.store.Next()
	g.upTo, g.at, g.filled = g.end, now.Mono, 0
	to := uint64(0) // infinity
	if chunk > 0 && in+chunk-1 < g.end {
		g.upTo = in + chunk - 1
		to = g.upTo
	}
	b := s.a.body.reset()
	b.Number(7, in)
	b.Number(16, to)
	s.send(now, "2", b.b)
}

// afterGap processes kept messages whose turn has come, and asks for what is still
// missing.
func (s *Session) afterGap(now Now) {
	g := &s.gap
	for s.link != nil && s.logoutBy == 0 && !s.opening && len(g.held) > 0 {
		in, _ := s.store.Next()
		h := g.held[0]
		if h.seq > in {
			break
		}
		g.held = slices.Delete(g.held, 0, 1)
		g.bytes -= len(h.raw)
		if h.seq == in {
			s.processHeld(now, h)
		}
	}
	if g.end == 0 || s.link == nil || s.logoutBy != 0 {
		return
	}
	in, _ := s.store.Next()
	switch {
	case in > g.end && len(g.held) > 0: // the next gap
		g.end, g.tries = g.held[0].seq-1, 0
		s.askAgain(now)
	case in > g.end:
		s.gap = gap{held: g.held[:0]}
	case in > g.upTo || g.filled == in && in >= g.upTo: // the next part
		g.tries = 0
		s.askAgain(now)
	}
}

// processHeld processes a kept message as if it came now.
func (s *Session) processHeld(now Now, h held) {
	if h.raw == nil {
		s.store.Received(h.seq + 1)
		return
	}
	m := &s.a.msg
	if m.parse(nextFrame(h.raw, s.a.cfg.Limits.Message), s.profile.Version.table()) == nil {
		s.process(now, m)
	}
}

// gapTick asks again for a gap that is not filled, and gives up after some times.
func (s *Session) gapTick(now Now) {
	g := &s.gap
	if g.end == 0 || now.Mono-g.at < max(s.heartBt, int64(10*time.Second)) {
		return
	}
	if g.tries++; g.tries >= maxTries {
		in, _ := s.store.Next()
		s.closing = fmt.Errorf("session %s: %w", s.profile.ID, errNoAnswer)
		s.sendLogout(now, fmt.Sprintf("%s: MsgSeqNum %d to %d are missing", errNoAnswer, in, g.end))
		return
	}
	s.askAgain(now)
}
