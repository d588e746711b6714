package client

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// suspect checks a connection over which an answer is long overdue: a node that is cut off silently
// closes no connection. It asks other nodes who the primary is, and leaves the present one only for
// a successor; a slow primary is waited for. It also pings the node itself: a connection over which
// not even that is answered (a firewall dropped it) is replaced.
func (s *Session) suspect(c *conn, now int64) {
	if c.heard {
		c.heard, c.heardAt = false, now
	}
	limit := int64(s.client.cfg.SuspectAfter)
	if !s.owed() {
		return
	}
	since := int64(math.MaxInt64)
	if s.win.inFlight() > 0 {
		since = s.win.at(s.win.head).submitted
	}
	if !s.lookups.empty() {
		since = min(since, s.lookups.oldest())
	}
	owed := now - max(since, s.lastOK)
	if owed < limit {
		return
	}
	if s.reads == readsOfBackup {
		s.p.fail(c, &silentError{c.addr, time.Duration(owed), "another copy is asked"})
		return
	}
	if now-c.pingedAt >= limit && c.heardAt >= c.pingedAt {
		c.pingedAt = now
		c.out = wire.AppendRequest(c.out, wire.TypePing, &wire.Request{ReqID: 1})
	} else if c.heardAt < c.pingedAt && now-c.pingedAt >= deafAfter*limit {
		s.p.fail(c, &silentError{c.addr, time.Duration(owed), "and did not answer a ping"})
		return
	}
	if s.suspecting || now-s.suspected < limit/askAgain {
		return
	}
	s.suspecting, s.suspected = true, now
	go s.askOthers(c)
}

const (
	// askAgain is how many times per SuspectAfter the others are asked while an answer is overdue.
	// All sessions of a client share the questions.
	askAgain = 4
	// deafAfter, in units of SuspectAfter, allows for a node that is only very busy.
	deafAfter = 5
)

func (s *Session) askOthers(c *conn) {
	ctx, cancel := context.WithTimeout(context.Background(), s.client.attemptTimeout(0))
	err := s.client.refresh(ctx, s.partition, c.addr)
	cancel()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.suspecting = false
	if err != nil || s.p.conn != c {
		return
	}
	if info, ok := s.client.partition(s.partition); ok && info.Epoch > s.epoch && info.Primary.ID != "" && info.Primary.ID != s.member {
		s.p.fail(c, &silentError{c.addr, time.Duration(nanotime() - s.lastOK), fmt.Sprintf("and %s is the primary since epoch %d", info.Primary.Address, info.Epoch)})
	}
}
