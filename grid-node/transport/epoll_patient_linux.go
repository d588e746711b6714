package transport

import "golang.org/x/sys/unix"

// servePatient serves some of the connections that are not prompt, and listeners.
func (l *epollLoop) servePatient() {
	l.ready = false
	from := l.clock.fine()
	now := from
	full := true
	for ; full && now-from < slice; now = l.clock.fine() {
		n, errno := epollWait(l.patientfd, l.few, 0)
		if errno != 0 {
			full = false
			break
		}
		l.share.crowd = l.share.crowd || n > 1
		for i := range l.few[:n] {
			l.dispatch(&l.few[i])
		}
		full = n == len(l.few)
	}
	l.share.more, l.share.crowd = full, false
	l.share.spent(from, now)
}

// rest stops or resumes waiting for deferrable work.
func (l *epollLoop) rest() {
	d := l.share.rest(l.clock.fine())
	if masked := d > 0; masked != l.masked {
		l.masked, l.rested = masked, true
		mask := uint32(unix.EPOLLIN)
		if masked {
			mask = 0
		}
		if err := l.ctl(unix.EPOLL_CTL_MOD, l.socks[l.patientfd], mask); err != nil {
			l.err = err
		}
	}
	if l.rested { // 0 stops the timer
		setTimer(l.restfd, d)
		l.rested = false
	}
}

func (s *epollSocket) setPrompt(c *Conn, on bool) {
	err := unix.EpollCtl(s.ep, unix.EPOLL_CTL_DEL, s.fd, nil)
	if s.ep = s.l.patientfd; on {
		s.ep = s.l.epfd
	}
	if err == nil {
		err = s.l.ctl(unix.EPOLL_CTL_ADD, s, s.mask)
	}
	if err != nil {
		c.Close(err)
	}
}
