package service

import (
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
)

const (
	drainLook = 10 * time.Millisecond
	goodbye   = "this gateway stops; log on again"
)

// drain logs all sessions out, each when its orders are answered, at the latest after half
// of the time. New logons are refused meanwhile.
func (s *Service) drain(ended chan error) {
	s.draining.Store(true)
	began := time.Now()
	s.log.Info("stopping: FIX sessions are logged out", "time", s.cfg.Drain.String())
	for passed := time.Duration(0); passed < s.cfg.Drain; passed = time.Since(began) {
		left := make(chan int, 1)
		if !s.server.Post(func(now fix.Now) { left <- s.logOut(now, passed >= s.cfg.Drain/2) }) {
			return
		}
		select {
		case n := <-left:
			if n == 0 {
				return
			}
		case err := <-ended: // the loop failed
			ended <- err
			return
		}
		time.Sleep(drainLook)
	}
	s.log.Warn("stopping: not all sessions answered their Logout in time")
}

// logOut sends Logouts to sessions without an order under way, or to all, and returns how
// many have a connection still.
func (s *Service) logOut(now fix.Now, all bool) (left int) {
	for _, k := range s.sessions {
		if !k.LoggedOn() {
			continue
		}
		left++
		if all || s.desk.InFlight(k.Session) == 0 {
			k.Logout(now, goodbye)
		}
	}
	return left
}
