package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Reviewer vouches for tokens. Review may take as long as ctx lets it. An error that
// matches ErrRefused says that the token is not good; any other, that nobody knows.
type Reviewer interface {
	Review(ctx context.Context, token string) (*Identity, error)
}

// ErrRefused says that a token is not good, and asking again is of no use.
var ErrRefused = errors.New("token refused")

// ErrUnavailable says that nobody could be asked about a token, or too many wait for that.
var ErrUnavailable = errors.New("tokens cannot be looked at now")

// Limits of Tokens. Zero fields take the default.
type Limits struct {
	Workers     int           // reviews at the same time; default 4
	Queue       int           // tokens that wait for a review; default 64
	PerAddress  int           // of those, from one address; default 8
	Timeout     time.Duration // of a review, waiting included; default 4 s
	Fresh       time.Duration // how long a verdict counts without asking again; default 5 min
	Stale       time.Duration // and if nobody can be asked; default 1 h
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

// Verdict is the outcome of a look at a token.
type Verdict struct {
	Identity *Identity
	// Until is when the token has to be looked at again.
	Until time.Time
	// Expires is when the token ends by what it says; zero for never.
	Expires time.Time
	Err     error // matches ErrRefused or ErrUnavailable; Identity is nil then
}

// TokenStats are counters since the start.
type TokenStats struct {
	Accepted, Refused, Failed uint64 // reviews, by outcome
	Cached                    uint64 // answered without a review
	Turned                    uint64 // refused because too many waited
}

// Tokens looks at tokens: bounded in the number of reviews, of those who wait, and
// of what it remembers. What asks about the same token at the same time shares a
// review. Safe for concurrent use; Ask never waits.
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
	waiting  map[string]int // reviews under way by address
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

// review is one question under way.
type review struct {
	token   string
	key     digest
	host    string
	expires time.Time
	by      time.Time // when it has to be answered
	done    []func(Verdict)
}

// NewTokens makes one that takes tokens for one audience. Run has to run.
func NewTokens(r Reviewer, audience string, limits Limits) *Tokens {
	limits = limits.withDefaults()
	return &Tokens{reviewer: r, audience: audience, limits: limits, now: time.Now, queue: make(chan *review, limits.Queue),
		accepted: map[digest]accepted{}, refused: map[digest]refusal{}, pending: map[digest]*review{}, waiting: map[string]int{}}
}

// Audience that tokens have to be for.
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

// Ask has done called once with the verdict, at once or from another goroutine. host
// is who asks: nobody may fill the queue alone. again wants a verdict that is not
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
		return Verdict{Err: fmt.Errorf("%w: %d tokens of this address wait to be looked at, allowed: %d", ErrUnavailable, t.waiting[host], t.limits.PerAddress)}, true
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

// verdict of a token that was accepted.
func (t *Tokens) verdict(a accepted) Verdict {
	v := Verdict{Identity: a.identity, Until: a.reviewed.Add(t.limits.Fresh), Expires: a.expires}
	if !a.expires.IsZero() && a.expires.Before(v.Until) {
		v.Until = a.expires
	}
	return v
}

// review asks, within what is left of the time.
func (t *Tokens) review(ctx context.Context, r *review) (*Identity, error) {
	left := r.by.Sub(t.now())
	if left <= 0 {
		return nil, fmt.Errorf("%w: no answer within %v", ErrUnavailable, t.limits.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	id, err := t.reviewer.Review(ctx, r.token)
	if err == nil && id == nil {
		err = errors.New("the review names nobody")
	}
	return id, err
}

// answer remembers the outcome of a review and tells everybody who waits.
func (t *Tokens) answer(r *review, id *Identity, err error) {
	v := t.settle(r, id, err)
	for _, done := range r.done { // nobody adds to it: settle took it off the list
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
	// Nobody can be asked. Who was accepted not long ago is believed a little longer:
	// an API server that is away must not end the trade of those it has vouched for.
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

// makeRoom keeps a map below its limit: what has ended goes first, then anything.
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

// Stats of the reviews so far.
func (t *Tokens) Stats() TokenStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}
