package transport

import "time"

// A loop has a share of its time for deferrable work: new connections, input of unproven
// connections, requests that wait for their turn, long outputs. While urgent work was done
// recently (Conn.Urgent), deferrable work rests when it has used more than that. Turns
// bound how long an order waits for one wake-up; the share bounds how often it meets a
// long one, and leaves the loop's thread CPU time in reserve: the kernel's scheduler
// delays a thread that has had more than others, and a burst of a few milliseconds of work
// then costs orders ten times that.
const (
	// shareOf: 1/shareOf of the time is for deferrable work.
	shareOf = 4
	// maxCredit is how much of it can be saved up, or owed. Deferrable work that takes
	// less than its share never rests.
	maxCredit = int64(2 * time.Millisecond)
	// restUntil is the credit that ends a rest.
	restUntil = int64(500 * time.Microsecond)
	// urgentFor is how long after an order the share is enforced.
	urgentFor = int64(100 * time.Millisecond)
	// slice is how long a wake-up serves deferrable input, at least one piece of it.
	slice = int64(250 * time.Microsecond)
	// mostPut wake-ups in a row read input and let turns wait.
	mostPut = 4
)

type share struct {
	credit  int64 // nanoseconds
	at      int64 // Mono when credit was counted last
	urgent  int64 // Mono when urgent work was done last; 0 = never
	resting bool
	rests   uint64
	more    bool // deferrable input was not read in this wake-up
	put     int  // consecutive wake-ups that deferred turns for it
	crowd   bool // deferrable input of several connections is being read: their requests wait for their turn
}

// turnsWait reports whether requests whose turn it is wait for another wake-up: the input
// not yet read may have an order. Not for long, since there may always be some.
func (s *share) turnsWait() bool {
	if s.resting {
		return true
	}
	if s.put++; !s.more || s.put > mostPut {
		s.put = 0
	}
	s.more = false
	return s.put > 0
}

// spent counts the time from..to of deferrable work.
func (s *share) spent(from, to int64) {
	s.fill(from)
	if !s.kept(to) {
		return
	}
	s.credit = max(s.credit-(to-from), -maxCredit)
	s.at = max(s.at, to) // no credit is earned while it is served
	if s.credit <= 0 && !s.resting {
		s.resting = true
		s.rests++
	}
}

func (s *share) fill(now int64) {
	s.credit = min(s.credit+max(0, now-s.at)/shareOf, maxCredit)
	s.at = max(s.at, now)
}

// kept reports whether the share is enforced now.
func (s *share) kept(now int64) bool { return s.urgent != 0 && now-s.urgent < urgentFor }

// rest returns for how long deferrable work rests from now; 0: not at all.
func (s *share) rest(now int64) int64 {
	if !s.resting {
		return 0
	}
	s.fill(now)
	if s.credit >= restUntil || !s.kept(now) {
		s.resting = false
		return 0
	}
	return (restUntil - s.credit) * shareOf
}

// Urgent marks the handler's present work for this connection as urgent: an order that it
// stores. While there is such work, deferrable work has a share of the loop's time, and
// the input of this connection is read before that of connections that never had any. That
// ends when a request of the connection has to wait for its turn.
func (c *Conn) Urgent() {
	c.core.share.urgent = c.core.clock.mono
	if !c.prompt {
		c.setPrompt(true)
	}
}

func (c *Conn) setPrompt(on bool) {
	if c.prompt != on && !c.closed {
		c.prompt, c.visits = on, 0
		c.sock.setPrompt(c, on)
	}
}

// provenAfter deliveries of whole requests, with all output sent, make a connection prompt
// too: it reads its answers.
const provenAfter = 16

// visited counts a fully consumed delivery.
func (c *Conn) visited() {
	if c.visits++; c.visits >= provenAfter {
		c.setPrompt(true)
	}
}
