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
	LateAccepted uint64 // of Unknown: the grid later reported it as accepted
	LateRefused  uint64 // of Unknown: the grid later reported it as refused
	Duplicates   uint64 // of Accepted: applied before, the stored reply came
	WindowFull   uint64 // TrySubmit, SubmitAsync and asynchronous reads refused for lack of room

	Reads         uint64 // asynchronous reads taken into the window
	ReadsAnswered uint64 // … with an order, or with ErrNotFound
	ReadsFailed   uint64 // … ended with any other error

	Connects   uint64 // connections made with the session opened on them
	Redirects  uint64 // answers that named another node as primary, or none
	Resent     uint64 // Submit frames sent again after a reconnect
	Evictions  uint64 // times the grid had forgotten the session
	Gaps       uint64 // acks that skipped an order, and SequenceGap answers of the node
	Violations uint64 // all breaches of the protocol by the peer, Gaps included

	// Outages of all sessions; the last ones in full are in Outages().
	Outages       uint64
	LastOutage    Outage
	LongestOutage Outage
	OutageTotal   time.Duration
	// OutageCounts[i] counts the outages of at most OutageBounds[i] that are
	// longer than the bound before; the last place counts those above all bounds.
	OutageCounts [len(OutageBounds) + 1]uint64
}

// OutageBounds are the upper bounds of Stats.OutageCounts.
var OutageBounds = [...]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// outage counts one.
func (s *Stats) outage(o Outage) {
	d := o.Duration()
	s.Outages++
	s.LastOutage = o
	s.OutageTotal += d
	if d > s.LongestOutage.Duration() {
		s.LongestOutage = o
	}
	i := 0
	for i < len(OutageBounds) && d > OutageBounds[i] {
		i++
	}
	s.OutageCounts[i]++
}

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
	s.Reads += t.Reads
	s.ReadsAnswered += t.ReadsAnswered
	s.ReadsFailed += t.ReadsFailed
	s.Connects += t.Connects
	s.Redirects += t.Redirects
	s.Resent += t.Resent
	s.Evictions += t.Evictions
	s.Gaps += t.Gaps
	s.Violations += t.Violations
	s.Outages += t.Outages
	s.OutageTotal += t.OutageTotal
	for i := range s.OutageCounts {
		s.OutageCounts[i] += t.OutageCounts[i]
	}
	if t.LastOutage.To.After(s.LastOutage.To) {
		s.LastOutage = t.LastOutage
	}
	if t.LongestOutage.Duration() > s.LongestOutage.Duration() {
		s.LongestOutage = t.LongestOutage
	}
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
