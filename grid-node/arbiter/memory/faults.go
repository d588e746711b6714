package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// FaultMode is how the HTTP form of the arbiter misbehaves towards nodes. What
// tests use (/v1/faults, /v1/partitions/{name}/spec) always works.
type FaultMode string

// The modes.
const (
	FaultNone FaultMode = "ok"
	// FaultAway: requests get no answer, connections and watches end.
	FaultAway FaultMode = "away"
	// FaultSlow: every answer is delayed.
	FaultSlow FaultMode = "slow"
	// FaultCommitThenTimeout: a change is made, then the connection ends after a delay
	// without an answer. Reads are answered.
	FaultCommitThenTimeout FaultMode = "commit-then-timeout"
)

// Fault is the body of POST /v1/faults and the answer to GET /v1/faults.
type Fault struct {
	Mode  FaultMode `json:"mode"`
	Delay string    `json:"delay,omitempty"` // Go duration, 0..1m; default 200ms for slow, 0 otherwise
}

const maxFaultDelay = time.Minute

// check returns the delay of a fault, or an error.
func (f *Fault) check() (time.Duration, error) {
	switch f.Mode {
	case FaultNone, FaultAway, FaultSlow, FaultCommitThenTimeout:
	default:
		return 0, fmt.Errorf("mode: value %.40q, allowed: ok, away, slow, commit-then-timeout", f.Mode)
	}
	if f.Delay == "" && f.Mode == FaultSlow {
		f.Delay = "200ms"
	}
	if f.Delay == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(f.Delay)
	if err != nil || d < 0 || d > maxFaultDelay {
		return 0, fmt.Errorf("delay: value %.40q, allowed: 0s..%s", f.Delay, maxFaultDelay)
	}
	return d, nil
}

// faults is the fault switch. Its zero value is FaultNone.
type faults struct {
	mu    sync.Mutex
	fault Fault
	delay time.Duration
	ended context.CancelFunc // of the requests that wait in the present fault
	ctx   context.Context
}

func (s *faults) set(f Fault) error {
	d, err := f.check()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.delay = f, d
	if s.ended != nil {
		s.ended()
	}
	s.ctx, s.ended = context.WithCancel(context.Background())
	return nil
}

// now returns the present fault, and a context that ends with it.
func (s *faults) now() (Fault, time.Duration, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.fault.Mode = FaultNone
		s.ctx, s.ended = context.WithCancel(context.Background())
	}
	return s.fault, s.delay, s.ctx
}

// faulty applies the fault to requests of nodes.
func (s *Store) faulty(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		fault, delay, during := s.faults.now()
		switch fault.Mode {
		case FaultAway:
			panic(http.ErrAbortHandler) // ends the connection without an answer
		case FaultSlow:
			wait(req.Context(), delay)
		case FaultCommitThenTimeout:
			if req.Method == http.MethodPut {
				next(discard{}, req)
				wait(req.Context(), delay)
				panic(http.ErrAbortHandler)
			}
		}
		// A watch that waits when the arbiter goes away is cut off with it.
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		defer context.AfterFunc(during, cancel)()
		next(w, req.WithContext(ctx))
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// discard drops a response.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func (s *Store) serveFault(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodPost {
		var f Fault
		if !decode(w, req, &f, "one object with mode and delay") {
			return
		}
		if err := s.faults.set(f); err != nil {
			answer(w, http.StatusBadRequest, problem{Message: err.Error()})
			return
		}
	}
	f, _, _ := s.faults.now()
	answer(w, http.StatusOK, f)
}

// decode reads a JSON body of known fields only; false: an error was sent.
func decode(w http.ResponseWriter, req *http.Request, into any, allowed string) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		answer(w, http.StatusBadRequest, problem{Message: fmt.Sprintf("body: %v; allowed: %s in JSON, at most %d bytes", err, allowed, maxBody)})
		return false
	}
	return true
}
