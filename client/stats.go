package client

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// Stats are counters since the start of a Session or Client.
type Stats struct {
	Submitted    uint64 // orders given to Submit or SubmitAsync and taken into the window
	Accepted     uint64 // answered with a receipt
	Refused      uint64 // answered with a RejectError
	Unknown      uint64 // ended with ErrUnknownOutcome
	NotSent      uint64 // ended with ErrNotSent
	LateAccepted uint64 // of Unknown: the grid later said that it had accepted it
	LateRefused  uint64 // of Unknown: the grid later said that it had not
	Duplicates   uint64 // of Accepted: applied before, the stored reply came
	WindowFull   uint64 // TrySubmit and SubmitAsync calls refused for want of room

	Connects   uint64 // connections made with the session opened on them
	Resent     uint64 // Submit frames sent again after a reconnect
	Evictions  uint64 // times the grid had forgotten the session
	Gaps       uint64 // acks that skipped an order, and SequenceGap answers of the node
	Violations uint64 // all breaches of the protocol by the peer, Gaps included

	// An outage lasts from the last answer before trouble (or from the first
	// order without one, if that was later) to the next answer.
	Outages       uint64
	LastOutage    Outage
	LongestOutage Outage
	OutageTotal   time.Duration
}

// Outage is a time without answers, as this client saw it.
type Outage struct {
	From, To time.Time
}

// Duration of the outage.
func (o Outage) Duration() time.Duration { return o.To.Sub(o.From) }

func (s *Stats) add(t *Stats) {
	s.Submitted += t.Submitted
	s.Accepted += t.Accepted
	s.Refused += t.Refused
	s.Unknown += t.Unknown
	s.NotSent += t.NotSent
	s.LateAccepted += t.LateAccepted
	s.LateRefused += t.LateRefused
	s.Duplicates += t.Duplicates
	s.WindowFull += t.WindowFull
	s.Connects += t.Connects
	s.Resent += t.Resent
	s.Evictions += t.Evictions
	s.Gaps += t.Gaps
	s.Violations += t.Violations
	s.Outages += t.Outages
	s.OutageTotal += t.OutageTotal
	if t.LastOutage.To.After(s.LastOutage.To) {
		s.LastOutage = t.LastOutage
	}
	if t.LongestOutage.Duration() > s.LongestOutage.Duration() {
		s.LongestOutage = t.LongestOutage
	}
}

// trouble is what went wrong since the last good answer.
type trouble struct {
	since  int64 // first failure; paces the reconnects
	outage int64 // since when an order waits for its answer because of it; 0 none
	last   error
}

// begin notes a failure. waitingSince is 0 if no order waits.
func (t *trouble) begin(now, waitingSince int64, cause error) {
	if t.since == 0 {
		t.since = now
	}
	if t.outage == 0 {
		t.outage = waitingSince
	}
	if cause != nil {
		t.last = cause
	}
}

// end notes a good answer.
func (t *trouble) end(now int64, s *Stats) {
	if t.outage != 0 {
		o := Outage{From: timeOf(t.outage), To: timeOf(now)}
		s.Outages++
		s.LastOutage = o
		s.OutageTotal += o.Duration()
		if o.Duration() > s.LongestOutage.Duration() {
			s.LongestOutage = o
		}
	}
	*t = trouble{}
}

func randomID() [2]uint64 {
	var b [16]byte
	for {
		rand.Read(b[:]) //nolint:errcheck // crypto/rand never fails, it aborts the program
		id := [2]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
		if id[0]|id[1] != 0 {
			return id
		}
	}
}
