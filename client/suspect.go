package client

import (
	"context"
	"fmt"
	"time"
)

// suspect asks other nodes who the primary is when the present one owes an
// answer for long: a node that is cut off silently closes no connection.
func (s *Session) suspect(c *conn, now int64) {
	limit := int64(s.client.cfg.SuspectAfter)
	if s.suspecting || s.win.inFlight() == 0 || now-s.suspected < limit {
		return
	}
	if cell := s.win.at(s.win.head); now-max(cell.submitted, s.lastOK) < limit {
		return
	}
	s.suspecting, s.suspected = true, now
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.client.attemptTimeout(0))
		err := s.client.refresh(ctx, s.partition.Shard(), c.addr)
		cancel()
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		s.suspecting = false
		if err != nil || s.p.conn != c {
			return
		}
		if info, ok := s.client.partition(s.partition); ok && info.Epoch > s.epoch && info.Primary.ID != "" && info.Primary.ID != s.member {
			s.p.fail(c, fmt.Errorf("%s owed an answer for %s and %s is the primary since epoch %d",
				c.addr, time.Duration(nanotime()-s.lastOK).Round(time.Millisecond), info.Primary.Address, info.Epoch))
		}
	}()
}
