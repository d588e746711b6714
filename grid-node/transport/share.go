package transport

import "time"

// A loop has a share of its time for what can wait: connections that come, input of
// those that have not proved to be of use, requests that wait for their turn, long
// outputs. While something that cannot wait was done lately (Conn.Urgent), what can wait
// rests when it has taken more than that. Turns bound how long an order waits for one
// wake-up; the share bounds how often it meets a long one, and leaves the loop's thread
// time that it has not used: the kernel's scheduler lets a thread wait that has had more
// than others, and a burst of a few milliseconds of work then costs orders ten times that.
const (
	// shareOf: one part in so many of the time is for what can wait.
	shareOf = 4
	// maxCredit is how much of it can be saved up; as much may be owed. What can wait and
	// takes less than its share never rests.
	maxCredit = int64(2 * time.Millisecond)
	// restUntil is the credit that ends a rest.
	restUntil = int64(500 * time.Microsecond)
	// urgentFor is how long after an order the share is kept to.
	urgentFor = int64(100 * time.Millisecond)
	// slice is how long a wake-up serves input that can wait, one piece of it at least.
	slice = int64(250 * time.Microsecond)
	// mostPut wake-ups in a row read input and let turns wait.
	mostPut = 4
)

type share struct {
	credit  int64 // nanoseconds
	at      int64 // Mono when credit was counted last
	urgent  int64 // Mono when something that cannot wait was done last; 0 = never
	resting bool
	rests   uint64
	more    bool // input that can wait is there and was not read in this wake-up
	put     int  // wake-ups in a row that let turns wait for it
	crowd   bool // input of several that can wait is being read: their requests wait for their turn
}

// turnsWait reports whether requests whose turn it is wait for another wake-up: an order
// may be in the input that is not read. Not for long, for there may always be some.
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

// spent counts what was done from one time to another for what can wait.
func (s *share) spent(from, to int64) {
	s.fill(from)
	if !s.kept(to) {
		return
	}
	s.credit = max(s.credit-(to-from), -maxCredit)
	s.at = max(s.at, to) // what can wait earns nothing while it is served
	if s.credit <= 0 && !s.resting {
		s.resting = true
		s.rests++
	}
}

func (s *share) fill(now int64) {
	s.credit = min(s.credit+max(0, now-s.at)/shareOf, maxCredit)
	s.at = max(s.at, now)
}

// kept reports whether the share is kept to now.
func (s *share) kept(now int64) bool { return s.urgent != 0 && now-s.urgent < urgentFor }

// rest returns for how long what can wait has to rest from now; 0: not at all.
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

// Urgent says that what the handler does now for this connection cannot wait: an order
// that it stores. While there is such work, what can wait has a share of the loop's time,
// and the input of this connection is read before that of connections that never had any.
// That ends when a request of the connection has to wait for its turn.
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

// provenAfter deliveries of whole requests, with nothing left to be sent, make a
// connection prompt too: it takes what it asks for.
const provenAfter = 16

// visited counts a delivery that left nothing over.
func (c *Conn) visited() {
	if c.visits++; c.visits >= provenAfter {
		c.setPrompt(true)
	}
}
