package client

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// lookup is one asynchronous read from its call to its answer.
type lookup struct {
	done      func(*OrderView, error) // nil once answered or given up
	key       []byte                  // the ClOrdID, a copy; kept for reuse
	seq       uint64                  // or the place in the log
	submitted int64                   // monotonic
	deadline  int64
	mode      ReadMode
	state     lookupState
}

type lookupState uint8

const (
	lookupSettled lookupState = iota // answered, or never to be sent again
	lookupWaits                      // for a connection, or for its retry
	lookupSent                       // on the present connection
)

// request is the frame's content; it is made anew for every attempt.
func (l *lookup) request(reqID uint64) wire.Get {
	m := wire.Get{ReqID: reqID, By: wire.ByID, Mode: uint8(l.mode), Seq: l.seq}
	if l.seq == 0 {
		m.By, m.Key = wire.ByClOrdID, l.key
	}
	return m
}

// lookups are the reads of a session without an answer, request ids head..next-1.
type lookups struct {
	ring       []lookup // a power of two
	head, next uint64
	limit      uint64
	waiting    int   // refused for the moment, to be retried at
	againAt    int64 // this time
	back       backoff
}

func newLookups(limit int) lookups {
	size := 1
	for size < limit {
		size *= 2
	}
	return lookups{ring: make([]lookup, size), head: 1, next: 1, limit: uint64(limit)}
}

func (w *lookups) at(id uint64) *lookup  { return &w.ring[id&uint64(len(w.ring)-1)] }
func (w *lookups) full() bool            { return w.next-w.head >= w.limit }
func (w *lookups) empty() bool           { return w.next == w.head }
func (w *lookups) holds(id uint64) bool  { return id >= w.head && id < w.next }
func (w *lookups) oldest() (since int64) { return w.at(w.head).submitted }

// until is when the waiting reads need to be checked.
func (w *lookups) until() int64 {
	if w.waiting == 0 {
		return math.MaxInt64
	}
	return w.againAt
}

// settle removes a read from the window.
func (w *lookups) settle(id uint64) {
	w.at(id).state = lookupSettled
	for w.head < w.next && w.at(w.head).state == lookupSettled {
		w.head++
	}
}

// found is an answered read whose callback has not run.
type found struct {
	done   func(*OrderView, error)
	entry  []byte // in the connection's read buffer; nil with err
	commit uint64
	from   string
	err    error
}

// look takes a read into the window and, with a connection, into its buffer.
func (s *Session) look(key []byte, seq uint64, mode ReadMode, done func(*OrderView, error), push bool) error {
	if done == nil {
		return errors.New("client: read: done is nil, allowed: a function; use Get to wait for the answer")
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	w := &s.lookups
	switch {
	case s.closed:
		return ErrClosed
	case w.full():
		s.connect() // the answers that make room have to come over a connection
		s.stats.WindowFull++
		return ErrWindowFull
	}
	now := s.stamp()
	id := w.next
	l := w.at(id)
	w.next++
	l.done, l.key, l.seq, l.mode = done, append(l.key[:0], key...), seq, mode
	l.submitted, l.deadline, l.state = now, now+int64(s.client.cfg.RequestTimeout), lookupWaits
	s.async++
	s.stats.Reads++
	c := s.p.conn
	if c == nil {
		if s.opened {
			s.troubled(now, now, nil)
		}
		s.connect()
	} else {
		s.encodeLookup(c, id)
		if push || len(c.out) >= enqueueLimit {
			s.p.flush(c, false)
		}
	}
	s.wakeReader()
	return nil
}

func (s *Session) encodeLookup(c *conn, id uint64) {
	l := s.lookups.at(id)
	l.state = lookupSent
	m := l.request(id)
	c.out = wire.AppendGet(c.out, s.partition, &m)
}

// askAgain resends reads that were refused for the moment, when their time has come.
func (s *Session) askAgain(c *conn, now int64) {
	w := &s.lookups
	if w.waiting == 0 || now < w.againAt {
		return
	}
	w.waiting = 0
	for id := w.head; id < w.next; id++ {
		if w.at(id).state == lookupWaits {
			s.encodeLookup(c, id)
		}
	}
}

// lookupsBroken notes that no answer comes over the connection any more.
func (s *Session) lookupsBroken() {
	w := &s.lookups
	w.waiting = 0
	for id := w.head; id < w.next; id++ {
		if l := w.at(id); l.state == lookupSent {
			if l.state = lookupWaits; l.done == nil {
				w.settle(id)
			}
		}
	}
}

// resendLookups puts all reads that still have a caller on a new connection.
func (s *Session) resendLookups(c *conn) {
	w := &s.lookups
	w.waiting = 0
	for id := w.head; id < w.next; id++ {
		if w.at(id).state == lookupWaits {
			s.encodeLookup(c, id)
		}
	}
}

// asked is the read that an answer names.
func (s *Session) asked(c *conn, t wire.Type, id uint64) (*lookup, error) {
	w := &s.lookups
	if !w.holds(id) || w.at(id).state != lookupSent {
		return nil, s.violation(c, fmt.Sprintf("%s has reqID %d, allowed: that of a read without an answer (%d..%d)", t, id, w.head, w.next-1), nil)
	}
	return w.at(id), nil
}

func (s *Session) onGetReply(c *conn, frame []byte) error {
	var m wire.GetReply
	if err := wire.DecodeGetReply(frame, &m); err != nil {
		return s.violation(c, "answer to a Get", err)
	}
	l, err := s.asked(c, wire.TypeGetReply, m.ReqID)
	if err != nil {
		return err
	}
	if p := wire.FramePartition(frame); p != s.partition {
		return s.violation(c, fmt.Sprintf("GetReply.partition is %s, allowed: %s", p, s.partition), nil)
	}
	request := l.request(m.ReqID)
	if err := checkReply(&request, &m); err != nil {
		return s.violation(c, "answer to a Get", err)
	}
	if m.Epoch > s.epoch {
		s.epoch = m.Epoch
		s.client.sawEpoch(s.partition, m.Epoch)
	}
	s.good()
	if s.lookups.back.attempts != 0 {
		s.lookups.back = backoff{}
	}
	f := found{entry: m.Entry, commit: m.CommitSeq, from: c.addr}
	switch m.Status {
	case wire.GetNotFound:
		f = found{err: ErrNotFound}
	case wire.GetFreed:
		f = found{err: freedError(s.partition, &request, m.Freed)}
	}
	s.answerLookup(l, f)
	s.lookups.settle(m.ReqID)
	return nil
}

// onRefusedLookup retries later what can succeed later.
func (s *Session) onRefusedLookup(c *conn, m *wire.Reject, reject *RejectError) error {
	if m.ForType != wire.TypeGet {
		return s.violation(c, fmt.Sprintf("reject is for a %s, allowed: Get", m.ForType), nil)
	}
	l, err := s.asked(c, wire.TypeReject, m.RequestID)
	if err != nil {
		return err
	}
	if m.Code == wire.CodeDraining {
		return reject // the next primary answers
	}
	if passing(m.Code) && l.done != nil {
		l.state = lookupWaits
		if w := &s.lookups; w.waiting == 0 {
			w.againAt = s.p.now + int64(w.back.pause(s.client.cfg.RetryMax, rand.Int64N))
		}
		s.lookups.waiting++
		s.trouble.last = reject
		return nil
	}
	s.good()
	s.answerLookup(l, found{err: reject})
	s.lookups.settle(m.RequestID)
	return nil
}

// answerLookup queues the callback of a read that was not given up.
func (s *Session) answerLookup(l *lookup, f found) {
	if l.done == nil {
		return
	}
	f.done, l.done = l.done, nil
	if f.err == nil || errors.Is(f.err, ErrNotFound) {
		s.stats.ReadsAnswered++
	} else {
		s.stats.ReadsFailed++
	}
	s.async--
	s.found = append(s.found, f)
}

// giveUpLookup ends waiting. What was sent stays in the window until it is
// answered or the connection is gone: its number is not free before.
func (s *Session) giveUpLookup(id uint64, cause error) {
	l := s.lookups.at(id)
	if l.done == nil {
		return
	}
	s.answerLookup(l, found{err: fmt.Errorf("client: read of %s: %w after %s: %w", s.partition, ErrUnavailable,
		time.Duration(nanotime()-l.submitted).Round(time.Microsecond), cause)})
	if l.state == lookupWaits {
		s.lookups.settle(id)
	}
}

func (s *Session) giveUpLookups(cause error) {
	for id := s.lookups.head; id < s.lookups.next; id++ {
		s.giveUpLookup(id, cause)
	}
}

func (s *Session) sweepLookups(now int64) {
	for id := s.lookups.head; id < s.lookups.next; id++ {
		if l := s.lookups.at(id); l.done != nil && l.deadline <= now {
			s.giveUpLookup(id, &timeoutError{limit: time.Duration(l.deadline - l.submitted).Round(time.Millisecond), last: s.trouble.last})
		}
	}
}

// keepFound copies what answered reads point to: another goroutine runs their
// callbacks, and the buffer is about to be read into again.
func (s *Session) keepFound() {
	for i := range s.found {
		s.found[i].entry = append([]byte(nil), s.found[i].entry...)
	}
}

// runFound runs the callbacks of answered reads; mu is not held.
func (s *Session) runFound(list []found) {
	v := &s.view
	for i := range list {
		f := &list[i]
		if f.err != nil {
			f.done(nil, f.err)
		} else {
			v.partition, v.entry, v.commit, v.from, v.decoded = s.partition, f.entry, f.commit, f.from, false
			f.done(v, nil)
			v.entry = nil
		}
		*f = found{}
	}
}
