package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// How long things may take.
const (
	injectWithin  = 2 * time.Minute
	recoverWithin = 45 * time.Second // one try: a node is on by then, if not ready
	retryAfter    = 2 * time.Second
	lookEvery     = time.Second
)

// Server does faults with the hands it was given. It is an http.Handler.
type Server struct {
	name  string
	token string
	hands []Hands
	book  *book
	ctx   context.Context // ends with Close
	close context.CancelFunc
	tasks sync.WaitGroup
	admit sync.Mutex // one new fault at a time, for conflicts to be seen
	say   func(format string, args ...any)
}

// Options of a server.
type Options struct {
	Name  string // how it calls itself
	Dir   string // where it keeps what it has injected; exists
	Token string // what callers must show
	Hands []Hands
	// Say is called with each event, one line each.
	Say func(format string, args ...any)
}

// NewServer takes up the faults an earlier process left in o.Dir, and serves.
func NewServer(o Options) (*Server, error) {
	if o.Token == "" {
		return nil, errors.New("an executor without a token would break machines for any client")
	}
	if _, err := os.Stat(o.Dir); err != nil {
		return nil, err
	}
	b, err := openBook(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{name: o.Name, token: o.Token, hands: o.Hands, book: b, say: o.Say}
	s.ctx, s.close = context.WithCancel(context.Background())
	for _, e := range b.all(true) {
		s.say("%s, %s, is %s from before; taking it up", e.Status.ID, e.Fault.Type, e.Status.State)
		s.tasks.Go(func() { s.resume(e) })
	}
	return s, nil
}

// Close stops serving. Faults stay, and are taken up by the next server.
func (s *Server) Close() {
	s.close()
	s.tasks.Wait()
	for _, h := range s.hands {
		h.Close()
	}
}

// Active is how many faults are not over.
func (s *Server) Active() int { return len(s.book.all(true)) }

// handsFor finds who can do a kind of fault, and the offer.
func (s *Server) handsFor(ctx context.Context, kind string) (Hands, executor.Offer, error) {
	for _, h := range s.hands {
		offers, err := h.Offers(ctx)
		if err != nil {
			return nil, executor.Offer{}, err
		}
		for _, offer := range offers {
			if offer.Type == kind {
				return h, offer, nil
			}
		}
	}
	return nil, executor.Offer{}, &executor.FieldError{Field: "type", Message: kind + " is not offered by this executor; see " + executor.PathCapabilities}
}

// conflict is a request that is right but cannot be met now.
type conflict struct{ message string }

func (c *conflict) Error() string { return c.message }

// put injects a fault or finds it.
func (s *Server) put(ctx context.Context, id string, fault *executor.Fault) (*entry, error) {
	s.admit.Lock()
	defer s.admit.Unlock()
	if e := s.book.get(id); e != nil {
		// One that was deleted before it was put has no type.
		if e.Fault.Type != "" && !same(&e.Fault, fault) {
			return nil, &conflict{fmt.Sprintf("fault %s is another one, of type %s; take another id", id, e.Fault.Type)}
		}
		return e, nil
	}
	hands, offer, err := s.handsFor(ctx, fault.Type)
	if err != nil {
		return nil, err
	}
	if err := suits(fault, &offer); err != nil {
		return nil, err
	}
	active := s.book.all(true)
	if len(active) >= mostActive {
		return nil, &conflict{fmt.Sprintf("%d faults are injected, which is the most; take some back", len(active))}
	}
	for _, other := range active {
		if why := hands.Conflict(&other.Fault, fault); why != "" {
			return nil, &conflict{fmt.Sprintf("%s by fault %s; take it back first", why, other.Status.ID)}
		}
	}
	deadline := time.Now().Add(time.Duration(fault.DeadlineSeconds) * time.Second).UTC()
	e := &entry{Fault: *fault, Notes: map[string]string{}, Status: executor.Status{
		ID: id, Type: fault.Type, State: executor.Injecting, Deadline: &deadline,
	}}
	if _, err := s.book.add(id, e); err != nil {
		return nil, err
	}
	s.tasks.Go(func() { s.run(hands, e) })
	return e, nil
}

// same compares faults as they are written: an empty list is none.
func same(a, b *executor.Fault) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// suits reports whether a fault is within an offer.
func suits(fault *executor.Fault, offer *executor.Offer) error {
	limit := offer.MaxDeadlineSeconds
	if limit != 0 && fault.DeadlineSeconds > limit {
		return &executor.FieldError{Field: "deadlineSeconds", Message: fmt.Sprintf("%d; this executor does %s for at most %d seconds", fault.DeadlineSeconds, fault.Type, limit)}
	}
	known := func(field, node string) error {
		if node == "" || len(offer.Nodes) == 0 || slices.Contains(offer.Nodes, node) {
			return nil
		}
		return &executor.FieldError{Field: field, Message: fmt.Sprintf("%q is not one of this executor's nodes, %v", node, offer.Nodes)}
	}
	for i, node := range fault.Nodes {
		if err := known(fmt.Sprintf("nodes[%d]", i), node); err != nil {
			return err
		}
	}
	for i := range fault.Pods {
		if err := known(fmt.Sprintf("pods[%d].node", i), fault.Pods[i].Node); err != nil {
			return err
		}
	}
	return nil
}

// remove has a fault taken back. One that is not known is remembered as over,
// so that a request that was overtaken does not inject it.
func (s *Server) remove(id string) (*entry, error) {
	s.admit.Lock()
	defer s.admit.Unlock()
	now := time.Now().UTC()
	e := &entry{Status: executor.Status{ID: id, State: executor.Recovered, Recovered: &now, Message: "there was no such fault; it will not be injected any more"}}
	existing, err := s.book.add(id, e)
	if err != nil {
		return nil, err
	}
	if existing != nil {
		s.book.unwant(existing)
		return existing, nil
	}
	return e, nil
}

func (e *entry) job() *Job {
	return &Job{ID: e.Status.ID, Fault: e.Fault, Deadline: *e.Status.Deadline, Notes: maps.Clone(e.Notes)}
}
