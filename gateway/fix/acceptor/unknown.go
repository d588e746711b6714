package acceptor

// unknownList has the connections without a logon, the oldest first.
type unknownList struct{ first, last *conn }

// strange adds a connection.
func (s *Server) strange(c *conn) {
	c.unknown, c.prev = true, s.oldest.last
	if c.prev != nil {
		c.prev.next = c
	} else {
		s.oldest.first = c
	}
	s.oldest.last = c
	s.unknown++
}

// known removes a connection that logged on, or ended.
func (s *Server) known(c *conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		s.oldest.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		s.oldest.last = c.prev
	}
	c.unknown, c.prev, c.next = false, nil, nil
	s.unknown--
}

// bucket grants a number of pieces of work a second.
type bucket struct {
	rate   int64
	tokens int64 // in billionths
	at     int64 // Mono, ns
}

// take reports whether one more may be done now. A second's worth may come at once.
func (b *bucket) take(mono int64) bool {
	const one = 1e9
	if b.at == 0 {
		b.tokens = b.rate * one
	}
	if passed := mono - b.at; passed > one {
		b.tokens = b.rate * one
	} else {
		b.tokens = min(b.tokens+passed*b.rate, b.rate*one)
	}
	b.at = mono
	if b.tokens < one {
		return false
	}
	b.tokens -= one
	return true
}
