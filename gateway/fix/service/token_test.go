package service_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/fix/service"
	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// answers of a grid about tokens: those of a user are right.
type answers struct {
	mu    sync.Mutex
	users map[string]client.Identity // by token
	err   error                      // that it cannot be asked for
	takes time.Duration
	hold  chan struct{} // an answer waits for it to be closed; nil: it does not
	lasts time.Duration
	asked atomic.Int64
	most  atomic.Int64
	now   atomic.Int64
}

func (a *answers) ask(ctx context.Context, token string) (client.Identity, error) {
	if n := a.now.Add(1); n > a.most.Load() {
		a.most.Store(n)
	}
	defer a.now.Add(-1)
	a.asked.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	id, is := a.users[token]
	err, takes, hold := a.err, a.takes, a.hold
	id.For = a.lasts
	a.mu.Unlock()
	if hold != nil {
		<-hold
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	a.mu.Lock()
	if err == nil && !is {
		err = client.ErrUnauthenticated
	}
	return id, err
}

func (a *answers) set(f func(*answers)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// secured is a Service over TLS that has the grid judge tokens, with sessions T0, T1, … of user bank beside those with the
// password.
func secured(t *testing.T, g *testgrid.Grid, a *answers, tokens int, names ...string) (d *desk, roots *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(dir, "gateway", pki.Identity{User: "gateway", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := secure.Load(secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, ClientAuth: secure.NoClientCert})
	if err != nil {
		t.Fatal(err)
	}
	d = serve(t, g, func(c *service.Config) { c.TLS, c.Judge = id.Server, a.ask }, append(names, "FIRST")...)
	d.tokens(tokens, names...)
	d.until("the sessions with tokens are there", func(s *service.Status) bool { return s.Configured == tokens+len(names) })
	how := id.Client("127.0.0.1").Clone()
	how.Certificates, how.GetClientCertificate = nil, nil
	return d, how
}

// tokens writes the file: T0, T1, … have a user, the others the password.
func (d *desk) tokens(n int, names ...string) {
	d.Helper()
	var list []roster.Entry
	for i := range n {
		list = append(list, roster.Entry{Version: "FIX.4.4", SenderCompID: fmt.Sprint("T", i), TargetCompID: "GRID", User: "bank"})
	}
	for _, name := range names {
		list = append(list, roster.Entry{Version: "FIX.4.4", SenderCompID: name, TargetCompID: "GRID", Username: "u", PasswordFile: "bank"})
	}
	text, err := json.Marshal(map[string]any{"sessions": list})
	if err != nil {
		d.Fatal(err)
	}
	d.write("sessions.json", string(text))
}

// over connects by TLS.
func (d *desk) over(how *tls.Config, name string) (*peer, error) {
	c, err := (&tls.Dialer{Config: how, NetDialer: &net.Dialer{Timeout: 20 * time.Second}}).DialContext(d.Context(), "tcp", d.Addrs()[0])
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &peer{d.T, c, bufio.NewReader(c), name, 0, "FIX.4.4"}, nil
}

// proves logs on with a password or token; "" is the end of the connection.
func (d *desk) proves(how *tls.Config, name, proof string) (*peer, string) {
	d.Helper()
	p, err := d.over(how, name)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = p.c.Close() })
	p.send("A", "98=0|108=30|141=Y|553=u|554="+proof+"|")
	return p, p.receive()
}

// refusal waits until status has one of a reason, and returns its text.
func (d *desk) refusal(reason string) (text string) {
	d.Helper()
	d.until("a refusal for "+reason, func(s *service.Status) bool {
		i := slices.IndexFunc(s.Refused, func(r service.Refusal) bool { return string(r.Reason) == reason })
		if i < 0 {
			return false
		}
		text = s.Refused[i].Text
		return true
	})
	return text
}

// TestTokens: sessions are proved by tokens that the grid judges, over TLS, without stopping others meanwhile; a token that
// is not good any more ends its session with the reason, and no text has one.
func TestTokens(t *testing.T) {
	g := testgrid.Run(t)
	bank := client.Identity{User: "bank", Permissions: wire.MaySubmit}
	a := &answers{lasts: time.Hour, users: map[string]client.Identity{"s3cret-bank": bank, "s3cret-next": bank, "s3cret-last": bank,
		"s3cret-fund": {User: "fund", Permissions: wire.MaySubmit}, "s3cret-reader": {User: "bank", Permissions: wire.MayRead}}}
	d, how := secured(t, g, a, 3, "P", "Q")
	for proof, want := range map[string]string{"s3cret-none": "the token is not known", "s3cret-fund": `the token is of user "fund"; allowed: that of "bank"`,
		"s3cret-reader": "has not the permission Submit in the grid", "": "has 0 bytes"} {
		if proof == "" {
			p, err := d.over(how, "T0")
			if err != nil {
				t.Fatal(err)
			}
			p.send("A", "98=0|108=30|141=Y|")
			if got := p.receive(); got != "" {
				t.Errorf("without a token: %q", got)
			}
		} else if _, got := d.proves(how, "T0", proof); got != "" {
			t.Errorf("with %s: %q", proof, got)
		}
		if text := d.refusal("Credentials"); !strings.Contains(text, want) || strings.Contains(text, "s3cret") {
			t.Errorf("with %s the text is %q, want %q", proof, text, want)
		}
	}
	p, got := d.proves(how, "T0", "s3cret-bank")
	if !strings.Contains(got, "|35=A|") {
		t.Fatalf("with the right token: %q", got)
	}
	p.order("token-1")
	p.want("|39=0|")

	// While the grid takes its time, a session with a password logs on, and one with a token that is known.
	hold := make(chan struct{})
	a.set(func(a *answers) { a.hold = hold })
	slow, err := d.over(how, "T1")
	if err != nil {
		t.Fatal(err)
	}
	slow.send("A", "98=0|108=30|141=Y|554=s3cret-next|")
	slow.order("behind") // it waits
	d.until("the grid is asked", func(*service.Status) bool { return a.now.Load() == 1 })
	if _, got := d.proves(how, "T1", "s3cret-other"); got != "" || !strings.Contains(d.refusal("NotJudged"), "another token of the session is being judged") {
		t.Errorf("another token of the session: %q, %s", got, d.refusal("NotJudged"))
	}
	for name, proof := range map[string]string{"P": "right", "T2": "s3cret-bank"} {
		if _, got := d.proves(how, name, proof); !strings.Contains(got, "|35=A|") {
			t.Errorf("%s beside a token that is judged: %q", name, got)
		}
	}
	close(hold)
	slow.want("|35=A|")
	slow.want("|39=0|")

	// A grid that does not answer is a reason of its own; whom it has judged stays.
	a.set(func(a *answers) { a.hold, a.err = nil, errors.New("connection refused") })
	_ = slow.c.Close()
	d.until("T1 is gone", func(s *service.Status) bool { return s.Sessions == 3 })
	if _, got := d.proves(how, "T1", "s3cret-third"); got != "" {
		t.Errorf("while the grid does not answer: %q", got)
	}
	d.until("the text has why", func(*service.Status) bool { return strings.Contains(d.refusal("NotJudged"), "connection refused") })

	// A judgement ends: it is made again, and another answer ends the session.
	a.set(func(a *answers) { a.err, a.lasts = nil, 10*time.Millisecond })
	p.order("token-2")
	p.want("|39=0|")
	e, got := d.proves(how, "T1", "s3cret-last")
	if !strings.Contains(got, "|35=A|") {
		t.Fatalf("T1: %q", got)
	}
	time.Sleep(100 * time.Millisecond)
	e.order("still") // judged again meanwhile, as before
	e.want("|39=0|")
	a.set(func(a *answers) { delete(a.users, "s3cret-last") })
	e.want("|58=the grid takes the token of this session no more; log on with another one|")
	e.send("5", "")
	if got := e.receive(); got != "" {
		t.Errorf("after the Logout: %q", got)
	}
	// So does another user of the session in the file, though the grid takes the token.
	d.write("sessions.json", `{"sessions": [{"version": "FIX.4.4", "senderCompID": "T0", "targetCompID": "GRID", "user": "fund"}]}`)
	p.want("|58=the token of this session is not the one that it needs any more; log on with another one|")
	text, err := json.Marshal(d.status())
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("status has a token: %s", text)
	}
}

// TestTokenFloods: logons with wrong tokens, as many as this machine can send, do not stop sessions with passwords. What
// they cost is beside the same flood of wrong passwords.
func TestTokenFloods(t *testing.T) {
	g := testgrid.Run(t)
	const victims, strangers = 24, 32
	a := &answers{takes: 50 * time.Millisecond, lasts: time.Hour}
	d, how := secured(t, g, a, victims, "P", "GUESSED")
	flood := func(name func(int) string) (logons int, middle time.Duration, refused int64) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var done atomic.Int64
		for i := range strangers {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					p, err := d.over(how, name(i))
					if err != nil {
						continue // no room
					}
					_, _ = p.c.Write(p.logonOf(fmt.Sprint("wrong-", i, "-", n)))
					if p.receiveQuietly() == "" {
						done.Add(1)
					}
					_ = p.c.Close()
				}
			})
		}
		var took []time.Duration
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			at := time.Now()
			p, got := d.proves(how, "P", "right")
			if !strings.Contains(got, "|35=A|") {
				t.Errorf("a session with a password is not let in: %q", got)
				break
			}
			took = append(took, time.Since(at))
			p.send("5", "")
			p.want("|35=5|")
			_ = p.receive()
		}
		cancel()
		all.Wait()
		slices.Sort(took)
		if len(took) == 0 {
			return 0, 0, done.Load()
		}
		return len(took), took[len(took)/2], done.Load()
	}
	n, middle, wrong := flood(func(int) string { return "GUESSED" })
	t.Logf("beside %d wrong passwords: %d logons, half of them within %s", wrong, n, middle)
	m, half, refused := flood(func(i int) string { return fmt.Sprint("T", i%victims) })
	t.Logf("beside %d wrong tokens: %d logons, half of them within %s; %d judged, at most %d at a time", refused, m, half, a.asked.Load(), a.most.Load())
	if n == 0 || m == 0 || wrong == 0 || refused == 0 || a.asked.Load() == 0 {
		t.Error("nothing was compared")
	}
	if most := a.most.Load(); most > judge.AtOnce {
		t.Errorf("%d tokens were judged at the same time, allowed: %d", most, judge.AtOnce)
	}
	if text := d.refusal("NotJudged"); !strings.Contains(text, "being judged") {
		t.Errorf("what is too much is refused with %q", text)
	}
}

// logonOf is a Logon.
func (p *peer) logonOf(proof string) []byte {
	p.seq++
	return fixMessage(p.version, p.name, "A", p.seq, "98=0|108=30|141=Y|553=u|554="+proof+"|")
}

// receiveQuietly is receive for a connection that may break.
func (p *peer) receiveQuietly() string {
	got, _ := p.in.ReadString(1)
	return got
}
