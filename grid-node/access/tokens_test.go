package access

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// jwt returns a token that only the API server can verify.
func jwt(name, audience string, expires time.Time) []byte {
	enc := base64.RawURLEncoding.EncodeToString
	return []byte(enc([]byte(`{"alg":"RS256"}`)) + "." + enc(fmt.Appendf(nil, `{"sub":%q,"aud":[%q],"exp":%d}`, name, audience, expires.Unix())) + "." + enc([]byte("signature of "+name)))
}

// office is an API server that can be slow, unreachable, or change its verdict.
type office struct {
	mu     sync.Mutex
	asked  int
	err    error
	hold   chan struct{} // not nil: answers wait for it to be closed
	under  int
	atOnce int
}

func (o *office) Review(ctx context.Context, token string) (*Identity, error) {
	o.mu.Lock()
	o.asked++
	o.under++
	o.atOnce = max(o.atOnce, o.under)
	err, hold := o.err, o.hold
	o.mu.Unlock()
	defer func() { o.mu.Lock(); o.under--; o.mu.Unlock() }()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return &Identity{User: "system:serviceaccount:trading:gateway"}, nil
}

func (o *office) set(err error, hold chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.hold = err, hold
}

func (o *office) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// clock is a clock that a test advances.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

const audience = "ordergrid.dev"

func newOffice(t *testing.T, l Limits) (*Tokens, *office, *clock) {
	t.Helper()
	o, c := &office{}, &clock{t: time.Unix(1_800_000_000, 0)}
	tokens := NewTokens(o, audience, l)
	tokens.now = c.now
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { tokens.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return tokens, o, c
}

func ask(t *testing.T, tokens *Tokens, token []byte, again bool) Verdict {
	t.Helper()
	got := make(chan Verdict, 1)
	tokens.Ask("10.0.0.1", token, again, func(v Verdict) { got <- v })
	return <-got
}

func TestVerdictsAreRemembered(t *testing.T) {
	tokens, o, c := newOffice(t, Limits{})
	token := jwt("gateway", audience, c.now().Add(time.Hour))
	v := ask(t, tokens, token, false)
	if v.Err != nil || v.Identity.account() != "trading/gateway" || !v.Until.Equal(c.now().Add(5*time.Minute)) {
		t.Fatalf("%+v", v)
	}
	c.pass(4 * time.Minute)
	if v = ask(t, tokens, token, false); v.Err != nil || o.count() != 1 {
		t.Fatalf("after 4 min: %+v, %d reviews", v, o.count())
	}
	c.pass(2 * time.Minute)
	if v = ask(t, tokens, token, false); v.Err != nil || o.count() != 2 {
		t.Fatalf("after 6 min: %+v, %d reviews", v, o.count())
	}
	if v = ask(t, tokens, token, true); v.Err != nil || o.count() != 2 {
		t.Fatalf("again, at once: %+v, %d reviews", v, o.count())
	}
	c.pass(11 * time.Second)
	if v = ask(t, tokens, token, true); v.Err != nil || o.count() != 3 {
		t.Fatalf("again: %+v, %d reviews", v, o.count())
	}

	// The API server is unreachable: an accepted token stays accepted for an hour, or
	// until it expires.
	o.set(errors.New("connection refused"), nil)
	c.pass(30 * time.Minute)
	if v = ask(t, tokens, token, false); v.Err != nil || v.Until.Before(c.now().Add(time.Second)) {
		t.Fatalf("API server away: %+v", v)
	}
	if v = ask(t, tokens, jwt("other", audience, c.now().Add(time.Hour)), false); !errors.Is(v.Err, ErrUnavailable) {
		t.Fatalf("API server away, a new token: %+v", v)
	}
	c.pass(25 * time.Minute) // the token had an hour
	if v = ask(t, tokens, token, false); !errors.Is(v.Err, ErrRefused) || !errors.Is(v.Err, ErrExpired) {
		t.Fatalf("expired: %+v", v)
	}
	long := jwt("long", audience, c.now().Add(24*time.Hour))
	o.set(nil, nil)
	ask(t, tokens, long, false)
	o.set(errors.New("connection refused"), nil)
	c.pass(61 * time.Minute)
	if v = ask(t, tokens, long, false); !errors.Is(v.Err, ErrUnavailable) {
		t.Fatalf("API server away for more than an hour: %+v", v)
	}

	// A refusal ends it at once, and is believed for 10 s.
	o.set(fmt.Errorf("%w: the service account is gone", ErrRefused), nil)
	before := o.count()
	for range 3 {
		if v = ask(t, tokens, long, true); !errors.Is(v.Err, ErrRefused) {
			t.Fatalf("refused: %+v", v)
		}
	}
	if o.count() != before+1 {
		t.Fatalf("%d reviews of a token that was refused, want 1", o.count()-before)
	}
	o.set(nil, nil)
	c.pass(11 * time.Second)
	if v = ask(t, tokens, long, false); v.Err != nil {
		t.Fatalf("10 s after a refusal: %+v", v)
	}
}

// An implausible token causes no review.
func TestImplausibleTokensAreNotReviewed(t *testing.T) {
	tokens, o, c := newOffice(t, Limits{})
	in := c.now().Add(time.Hour)
	for name, token := range map[string][]byte{
		"empty":                nil,
		"garbage":              bytes.Repeat([]byte{0xff}, 4000),
		"dots":                 []byte("..."),
		"two parts":            []byte("a.b"),
		"claims that are none": []byte("a.e30x.c"),
		"no audience":          []byte("a.e30.c"),
		"another audience":     jwt("x", "https://kubernetes.default.svc", in),
		"expired":              jwt("x", audience, c.now()),
		"long claims":          []byte("a." + strings.Repeat("A", maxClaims+1) + ".c"),
		"deep claims":          []byte("a." + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{'['}, 8000)) + ".c"),
	} {
		v := ask(t, tokens, token, false)
		if !errors.Is(v.Err, ErrRefused) || v.Identity != nil {
			t.Errorf("%s: %+v", name, v)
		}
		t.Logf("%s: %v", name, v.Err)
		if len(token) > 8 && strings.Contains(v.Err.Error(), string(token[:8])) {
			t.Errorf("%s: the refusal contains the token: %v", name, v.Err)
		}
	}
	if n := o.count(); n != 0 {
		t.Errorf("%d reviews, want 0", n)
	}
	both := base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"ordergrid.dev"}`))
	if v := ask(t, tokens, []byte("a."+both+".c"), false); v.Err != nil || !v.Expires.IsZero() {
		t.Errorf("audience as one name: %+v", v)
	}
}

// However many ask, few reviews run at once, one token is reviewed once, and a flood from
// one address does not keep others out.
func TestAskingIsBounded(t *testing.T) {
	l := Limits{Workers: 2, Queue: 6, PerAddress: 3}
	tokens, o, c := newOffice(t, l)
	hold := make(chan struct{})
	o.set(nil, hold)
	in := c.now().Add(time.Hour)
	got := make(chan Verdict, 10_000)
	done := func(v Verdict) { got <- v }
	one := jwt("gateway", audience, in)
	for range 1000 { // a thousand sessions of one gateway, after a failover
		tokens.Ask("10.0.0.1", one, false, done)
	}
	for i := range 1000 { // a stranger with tokens of its own making
		tokens.Ask("10.6.6.6", jwt(fmt.Sprint("forged-", i), audience, in), false, done)
	}
	turned := 0
	for range 1000 - l.PerAddress {
		if v := <-got; !errors.Is(v.Err, ErrUnavailable) {
			t.Fatalf("%+v", v)
		}
		turned++
	}
	tokens.Ask("10.0.0.2", jwt("other", audience, in), false, done) // still admitted
	close(hold)
	for range 1000 + l.PerAddress + 1 {
		if v := <-got; v.Err != nil {
			t.Fatalf("%+v", v)
		}
	}
	if n := o.count(); n != 1+l.PerAddress+1 {
		t.Errorf("%d reviews, want %d", n, 1+l.PerAddress+1)
	}
	if o.atOnce > l.Workers {
		t.Errorf("%d reviews at once, want at most %d", o.atOnce, l.Workers)
	}
	if s := tokens.Stats(); s.Turned != uint64(turned) || s.Accepted != uint64(1+l.PerAddress+1) {
		t.Errorf("%+v", s)
	}
	if len(tokens.pending) != 0 || len(tokens.waiting) != 0 {
		t.Errorf("left over: %d reviews, %d addresses", len(tokens.pending), len(tokens.waiting))
	}
}

// Memory is bounded for any number of clients.
func TestMemoryIsBounded(t *testing.T) {
	tokens, o, c := newOffice(t, Limits{MaxAccepted: 16, MaxRefused: 8})
	for i := range 100 {
		o.set(nil, nil)
		ask(t, tokens, jwt(fmt.Sprint("good-", i), audience, c.now().Add(time.Hour)), false)
		o.set(ErrRefused, nil)
		ask(t, tokens, jwt(fmt.Sprint("bad-", i), audience, c.now().Add(time.Hour)), false)
	}
	if a, r := len(tokens.accepted), len(tokens.refused); a > 16 || r > 8 {
		t.Errorf("%d accepted and %d refused tokens are remembered, want at most 16 and 8", a, r)
	}
}

// A review that the API server never answers times out.
func TestReviewTimesOut(t *testing.T) {
	tokens, o, _ := newOffice(t, Limits{Timeout: 20 * time.Millisecond})
	o.set(nil, make(chan struct{}))
	tokens.now = time.Now
	if v := ask(t, tokens, jwt("x", audience, time.Now().Add(time.Hour)), false); !errors.Is(v.Err, ErrUnavailable) {
		t.Fatalf("%+v", v)
	}
}

// Claims are untrusted input.
func FuzzPeek(f *testing.F) {
	f.Add(jwt("x", audience, time.Unix(2_000_000_000, 0)))
	f.Add([]byte("a.eyJhdWQiOiJ4In0.c"))
	f.Add([]byte("a.e30.c"))
	f.Fuzz(func(t *testing.T, token []byte) {
		c, err := peek(token)
		if err != nil && (c.Expires != 0 || len(c.Audience) != 0) {
			t.Fatalf("claims of a token that is none: %+v", c)
		}
		if err = c.plausible(audience, time.Unix(1, 0)); err == nil && len(c.Audience) == 0 {
			t.Fatal("a token without an audience is plausible")
		}
	})
}
