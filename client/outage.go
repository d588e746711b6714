package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Outage is a time in which orders of a session waited because its connection
// or its primary was lost. An idle session that reconnects has none.
type Outage struct {
	Partition wire.PartitionID
	// From is the last answer before it, or the submission of the first order
	// left waiting, if that was later. To is the first answer after it.
	From, To time.Time
	// LastAnswer is the last answer before it, zero if there was none.
	LastAnswer time.Time
	Cause      OutageCause
	Err        error // the client's first error
	// Epoch and primary (member id) before and after. Equal: the connection was
	// lost, not the primary.
	OldEpoch, NewEpoch     uint64
	OldPrimary, NewPrimary string
	Attempts               int // to find the primary and to open the session there, the last one included
}

// Duration of the outage.
func (o Outage) Duration() time.Duration { return o.To.Sub(o.From) }

// String is one line for logs.
func (o Outage) String() string {
	who := fmt.Sprintf("primary %s of epoch %d", o.OldPrimary, o.OldEpoch)
	if o.NewPrimary != o.OldPrimary || o.NewEpoch != o.OldEpoch {
		who = fmt.Sprintf("from primary %s of epoch %d to %s of epoch %d", o.OldPrimary, o.OldEpoch, o.NewPrimary, o.NewEpoch)
	}
	return fmt.Sprintf("%s: no answers for %s (%s), %s, %d attempts: %v",
		o.Partition, o.Duration().Round(time.Microsecond), o.Cause, who, o.Attempts, o.Err)
}

// OutageCause is how a client detected the outage.
type OutageCause uint8

// Causes of outages.
const (
	OutageReset    OutageCause = iota // the connection was closed or reset, or the port was closed
	OutageSilent                      // an answer was owed and nothing came
	OutageMoved                       // the node reported it: not the primary (any more), or draining
	OutageRefused                     // the node refused the connection or the session
	OutageProtocol                    // the node broke the protocol
)

// String is the word docs/client.md uses.
func (c OutageCause) String() string {
	return [...]string{"reset", "silent", "moved", "refused", "protocol"}[min(int(c), 4)]
}

// silentError ends a connection that is silent although an answer is owed.
type silentError struct {
	address string
	owed    time.Duration
	then    string
}

func (e *silentError) Error() string {
	return fmt.Sprintf("%s owed an answer for %s, %s", e.address, e.owed.Round(time.Millisecond), e.then)
}

func causeOf(err error) OutageCause {
	var (
		silent *silentError
		not    *notPrimaryError
		goaway *GoawayError
		reject *RejectError
		timed  net.Error
	)
	switch {
	case errors.Is(err, ErrProtocol):
		return OutageProtocol
	case errors.As(err, &not):
		return OutageMoved
	case errors.As(err, &goaway):
		if goaway.Code == wire.GoawayDraining {
			return OutageMoved
		}
		return OutageRefused
	case errors.As(err, &reject):
		if reject.Code == wire.CodeDraining || reject.Code == wire.CodeSessionMoved {
			return OutageMoved
		}
		return OutageRefused
	case errors.Is(err, ErrSessionEvicted):
		return OutageRefused
	case errors.As(err, &silent), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return OutageSilent
	}
	return OutageReset
}

// trouble is the state of failures since the last good answer.
type trouble struct {
	since      int64 // first failure, 0 without a failure
	outage     int64 // since when an order waits for its answer because of it; 0: none
	lastAnswer int64
	epoch      uint64
	member     string
	first      error // first failure
	last       error // and last
	back       backoff
	triedAt    int64 // time of the last failed attempt or broken connection
}

// troubled notes a failure. waitingSince is 0 if no order waits.
func (s *Session) troubled(now, waitingSince int64, cause error) {
	t := &s.trouble
	if t.since == 0 {
		t.since, t.lastAnswer, t.epoch, t.member = now, s.lastOK, s.epoch, s.member
	}
	if t.outage == 0 {
		t.outage = waitingSince
	}
	if cause != nil {
		t.last = cause
		if t.first == nil {
			t.first = cause
		}
	}
}

// good notes an answer from a serving primary; the batch it came in says when.
func (s *Session) good() {
	s.lastOK = s.p.now
	if s.trouble.since|s.trouble.outage != 0 {
		s.recovered()
	}
}

// recovered clears the failure, and reports it if an order had to wait.
func (s *Session) recovered() {
	t := s.trouble
	s.trouble = trouble{}
	if t.outage == 0 {
		return
	}
	o := Outage{
		Partition: s.partition, From: timeOf(t.outage), To: timeOf(s.lastOK), Cause: causeOf(t.first), Err: t.first,
		OldEpoch: t.epoch, NewEpoch: s.epoch, OldPrimary: t.member, NewPrimary: s.member, Attempts: t.back.attempts,
	}
	if t.lastAnswer != 0 {
		o.LastAnswer = timeOf(t.lastAnswer)
	}
	s.stats.outage(o)
	s.outages.add(o, sessionOutages)
	s.client.outages.add(o, clientOutages)
	if f := s.client.cfg.OnOutage; f != nil {
		go f(o) // locks are held here, and it may call the session
	}
}

const (
	sessionOutages = 16
	clientOutages  = 64
)

// outageLog keeps the last outages. Its lock is taken last.
type outageLog struct {
	mu   sync.Mutex
	list []Outage
}

func (l *outageLog) add(o Outage, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == most {
		l.list = append(l.list[:0], l.list[1:]...)
	}
	l.list = append(l.list, o)
}

func (l *outageLog) copy() []Outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Outage(nil), l.list...)
}

// Outages are the last 16 outages of the session, oldest first.
func (s *Session) Outages() []Outage { return s.outages.copy() }

// Outages are the last 64 outages of all sessions of the client, closed ones
// included, in the order in which they ended.
func (c *Client) Outages() []Outage { return c.outages.copy() }
