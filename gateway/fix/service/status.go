package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
)

// Status is what /status has of FIX.
type Status struct {
	Addresses   []string  `json:"addresses"`
	TLS         bool      `json:"tls"`
	Configured  int       `json:"configured"` // sessions of the file
	Sessions    int       `json:"sessions"`   // logged on
	MaxSessions int       `json:"maxSessions"`
	Connections int       `json:"connections"`
	InFlight    int       `json:"inFlight"` // messages that the grid has not answered
	Draining    bool      `json:"draining"`
	FileError   string    `json:"fileError,omitempty"` // what is wrong with the files of the sessions; those read before are served
	Refused     []Refusal `json:"refused"`             // within the last five minutes
	Grid        []string  `json:"unreachable"`         // partitions whose primary does not answer
	Error       string    `json:"error,omitempty"`     // the event loop does not answer
}

// errLoop is what the event loop's silence is reported as.
var errLoop = errors.New("FIX: the event loop has not answered for a second, or has ended")

// snapshot is the state of the loop.
type snapshot struct {
	stats    acceptor.Stats
	counts   fix.Counts
	refused  []Refusal
	total    map[fix.LogonReason]uint64
	slow     uint64
	sessions int
	inFlight int
}

// ask returns the state of the loop, which answers within a second.
func (s *Service) ask() (*snapshot, error) {
	answer := make(chan *snapshot, 1)
	if !s.server.Post(func(fix.Now) {
		a := &snapshot{stats: s.server.Stats(), counts: s.server.Counts(), refused: s.refused.now(time.Now()), total: map[fix.LogonReason]uint64{}, sessions: len(s.sessions), slow: s.slow + s.server.Stats().Slow, inFlight: s.desk.InFlight(nil)}
		for why, n := range s.refused.total {
			a.total[why] = n
		}
		answer <- a
	}) {
		return nil, errLoop
	}
	select {
	case a := <-answer:
		return a, nil
	case <-time.After(time.Second):
		return nil, errLoop
	}
}

// Status returns a *Status.
func (s *Service) Status() any {
	st := &Status{Addresses: s.Addrs(), TLS: s.cfg.TLS != nil, MaxSessions: s.cfg.MaxSessions, Draining: s.draining.Load(), FileError: s.files.String(), Refused: []Refusal{}, Grid: s.grid.Missing()}
	a, err := s.ask()
	if err != nil {
		st.Error = err.Error()
		return st
	}
	st.Configured, st.Sessions, st.Connections, st.InFlight, st.Refused = a.sessions, a.stats.Sessions, a.stats.Conns, a.inFlight, a.refused
	return st
}

// NotReady names what keeps sessions from being served.
func (s *Service) NotReady() (lines []string) {
	if s.draining.Load() {
		lines = append(lines, "FIX: sessions are logged out, the process is about to end")
	}
	if _, err := s.ask(); err != nil {
		lines = append(lines, err.Error())
	}
	for _, p := range s.grid.Missing() {
		lines = append(lines, fmt.Sprintf("grid: %s", p))
	}
	return lines
}
