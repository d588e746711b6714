package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Reviewer vouches for tokens. Review may take as long as ctx allows. An error that
// matches ErrRefused means that the token is invalid; any other, that the outcome is
// unknown.
type Reviewer interface {
	Review(ctx context.Context, token string) (*Identity, error)
}

// ErrRefused means that a token is invalid and a retry is useless.
var ErrRefused = errors.New("token refused")

// ErrUnavailable means that the review could not be made, or that too many are queued.
var ErrUnavailable = errors.New("tokens cannot be reviewed now")

// Limits of Tokens. Zero fields take the default.
type Limits struct {
	Workers     int           // reviews at the same time; default 4
	Queue       int           // tokens that wait for a review; default 64
	PerAddress  int           // of those, from one address; default 8
	Timeout     time.Duration // of a review, waiting included; default 4 s
	Fresh       time.Duration // how long a verdict counts without asking again; default 5 min
	Stale       time.Duration // and while reviews fail; default 1 h
	Refused     time.Duration // how long a refusal counts; default 10 s
	MaxAccepted int           // tokens remembered; default 4096
	MaxRefused  int           // likewise, refused ones; default 1024
}

func (l Limits) withDefaults() Limits {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orD := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	or(&l.Workers, 4)
	or(&l.Queue, 64)
	or(&l.PerAddress, 8)
	orD(&l.Timeout, 4*time.Second)
	orD(&l.Fresh, 5*time.Minute)
	orD(&l.Stale, time.Hour)
	orD(&l.Refused, 10*time.Second)
	or(&l.MaxAccepted, 4096)
	or(&l.MaxRefused, 1024)
	return l
}

// Verdict is the outcome of a token review.
type Verdict struct {
	Identity *Identity
	// Until is when the token must be reviewed again.
	Until time.Time
	// Expires is when the token expires by its claims; zero for never.
	Expires time.Time
	Err     error // matches ErrRefused or ErrUnavailable; Identity is nil then
}

// TokenStats are counters since the start.
type TokenStats struct {
	Accepted, Refused, Failed uint64 // reviews, by outcome
	Cached                    uint64 // answered without a review
	Turned                    uint64 // refused because too many waited
}

// Tokens reviews tokens: bounded in concurrent reviews, queued requests and remembered
// verdicts. Concurrent requests for one token share a review. Safe for concurrent use; Ask
// never blocks.
type Tokens struct {
	reviewer Reviewer
	audience string
	limits   Limits
	now      func() time.Time
	queue    chan *review

	mu       sync.Mutex
	accepted map[digest]accepted
	refused  map[digest]refusal
	pending  map[digest]*review
	waiting  map[string]int // reviews in progress by address
	stats    TokenStats
}

type accepted struct {
	identity *Identity
	reviewed time.Time
	expires  time.Time
}

type refusal struct {
	err   error
	until time.Time
}

// review is one review in progress.
type review struct {
	token   string
	key     digest
	host    string
	expires time.Time
	by      time.Time // deadline
	done    []func(Verdict)
}

// NewTokens returns Tokens for one audience. Run must run.
func NewTokens(r Reviewer, audience string, limits Limits) *Tokens {
	limits = limits.withDefaults()
	return &Tokens{reviewer: r, audience: audience, limits: limits, now: time.Now, queue: make(chan *review, limits.Queue),
		accepted: map[digest]accepted{}, refused: map[digest]refusal{}, pending: map[digest]*review{}, waiting: map[string]int{}}
}

// Audience is the audience that tokens must have.
func (t *Tokens) Audience() string { return t.audience }

// Run reviews until ctx ends.
func (t *Tokens) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range t.limits.Workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case r := <-t.queue:
					id, err := t.review(ctx, r)
					t.answer(r, id, err)
				}
			}
		})
	}
	wg.Wait()
}

// Ask calls done once with the verdict, at once or from another goroutine. host is the
// address of the client, which cannot fill the queue alone. again asks for a verdict no
// older than Limits.Refused.
func (t *Tokens) Ask(host string, token []byte, again bool, done func(Verdict)) {
	if v, known := t.ask(host, token, again, done); known {
		done(v)
	}
}

func (t *Tokens) ask(host string, token []byte, again bool, done func(Verdict)) (v Verdict, known bool) {
	now := t.now()
	c, err := peek(token)
	if err == nil {
		err = c.plausible(t.audience, now)
	}
	if err != nil {
		return Verdict{Err: fmt.Errorf("%w: %w", ErrRefused, err)}, true
	}
	key, fresh := digestOf(token), t.limits.Fresh
	if again {
		fresh = t.limits.Refused
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a, ok := t.accepted[key]; ok && now.Sub(a.reviewed) < fresh {
		t.stats.Cached++
		return t.verdict(a), true
	}
	if r, ok := t.refused[key]; ok && now.Before(r.until) {
		t.stats.Cached++
		return Verdict{Err: r.err}, true
	}
	if r := t.pending[key]; r != nil {
		r.done = append(r.done, done)
		return Verdict{}, false
	}
	r := &review{token: string(token), key: key, host: host, by: now.Add(t.limits.Timeout), done: []func(Verdict){done}}
	if c.Expires != 0 {
		r.expires = time.Unix(c.Expires, 0)
	}
	if t.waiting[host] >= t.limits.PerAddress {
		t.stats.Turned++
		return Verdict{Err: fmt.Errorf("%w: %d tokens of this address await review, allowed: %d", ErrUnavailable, t.waiting[host], t.limits.PerAddress)}, true
	}
	select {
	case t.queue <- r:
	default:
		t.stats.Turned++
		return Verdict{Err: fmt.Errorf("%w: %d wait for it, allowed: %d", ErrUnavailable, t.limits.Queue, t.limits.Queue)}, true
	}
	t.pending[key] = r
	t.waiting[host]++
	return Verdict{}, false
}

// verdict returns the verdict of an accepted token.
func (t *Tokens) verdict(a accepted) Verdict {
	v := Verdict{Identity: a.identity, Until: a.reviewed.Add(t.limits.Fresh), Expires: a.expires}
	if !a.expires.IsZero() && a.expires.Before(v.Until) {
		v.Until = a.expires
	}
	return v
}

// review calls the Reviewer within the remaining time.
func (t *Tokens) review(ctx context.Context, r *review) (*Identity, error) {
	left := r.by.Sub(t.now())
	if left <= 0 {
		return nil, fmt.Errorf("%w: no answer within %v", ErrUnavailable, t.limits.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	id, err := t.reviewer.Review(ctx, r.token)
	if err == nil && id == nil {
		err = errors.New("the review names no user")
	}
	return id, err
}

// answer stores the outcome of a review and notifies all waiters.
func (t *Tokens) answer(r *review, id *Identity, err error) {
	v := t.settle(r, id, err)
	for _, done := range r.done { // no longer shared: settle removed it from the list
		done(v)
	}
}

func (t *Tokens) settle(r *review, id *Identity, err error) Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	delete(t.pending, r.key)
	if t.waiting[r.host]--; t.waiting[r.host] <= 0 {
		delete(t.waiting, r.host)
	}
	switch {
	case err == nil:
		t.stats.Accepted++
		id.Token = true
		a := accepted{identity: id, reviewed: now, expires: r.expires}
		makeRoom(t.accepted, t.limits.MaxAccepted, func(a accepted) bool { return now.Sub(a.reviewed) >= t.limits.Fresh })
		t.accepted[r.key] = a
		return t.verdict(a)
	case errors.Is(err, ErrRefused):
		t.stats.Refused++
		delete(t.accepted, r.key)
		makeRoom(t.refused, t.limits.MaxRefused, func(r refusal) bool { return !now.Before(r.until) })
		t.refused[r.key] = refusal{err: err, until: now.Add(t.limits.Refused)}
		return Verdict{Err: err}
	}
	t.stats.Failed++
	// The API server cannot be reached. A token accepted recently stays accepted for a
	// while: an outage of the API server must not stop clients already verified.
	if a, ok := t.accepted[r.key]; ok && now.Sub(a.reviewed) < t.limits.Stale && (a.expires.IsZero() || now.Before(a.expires)) {
		v := t.verdict(a)
		if again := now.Add(t.limits.Refused); v.Until.Before(again) {
			v.Until = again
		}
		return v
	}
	if !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return Verdict{Err: err}
}

// makeRoom keeps a map below its limit: expired entries go first, then any.
func makeRoom[V any](m map[digest]V, limit int, ended func(V) bool) {
	if len(m) < limit {
		return
	}
	for k, v := range m {
		if ended(v) {
			delete(m, k)
		}
	}
	for k := range m {
		if len(m) < limit {
			return
		}
		delete(m, k)
	}
}

// Stats returns the counters of reviews so far.
func (t *Tokens) Stats() TokenStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}
