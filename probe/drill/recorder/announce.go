package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/api"
)

// Announce has the recorder publish how the drill is getting on, for the consoles of a stream gateway. It is a client of the
// gateway like others, which may publish to the topic api.AnnouncedTopic. The drill does not depend on it: what cannot be
// published is left out.
type Announce struct {
	URL   string // wss://HOST:PORT, or ws:// on this machine
	Drill string // its name, the last token of the topic
	Token client.TokenSource
	TLS   client.TLS // nil: the authorities of this machine
}

const (
	announceEvery = time.Second
	announceRetry = 5 * time.Second
	// announcePatience bounds a connection, and a write.
	announcePatience = 5 * time.Second
	// announceEnd is how long the last one may take.
	announceEnd = 2 * time.Second
	// announcedSteps are the last ones, and announcedText the most bytes of a text.
	announcedSteps = 8
	announcedText  = 400
)

var announcedName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// check names flags of order-probe drill.
func (a *Announce) check() error {
	at, err := url.Parse(a.URL)
	switch {
	case err != nil || at.Host == "" || at.Port() == "" || at.Scheme != "ws" && at.Scheme != "wss" || strings.Trim(at.Path, "/") != "":
		return fmt.Errorf("--announce %q: must be wss://HOST:PORT of a stream gateway, or ws:// on this machine", a.URL)
	case at.Scheme == "ws" && !loopback(at.Hostname()):
		return fmt.Errorf("--announce %q: the token would be sent in the clear: must be wss://HOST:PORT, or an address of this machine", a.URL)
	case a.Token == nil:
		return errors.New(`--announce-token-file "": name the file with the token of a client of the gateway that may publish to ` + api.AnnouncedTopic + "*")
	case !announcedName.MatchString(a.Drill):
		return fmt.Errorf("--announce-name %.80q: must be 1 to 63 letters, digits, - and _", a.Drill)
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// announcing announces until the function that it returns is called.
func (r *Recorder) announcing(ctx context.Context) (end func()) {
	if r.cfg.Announce == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the end of the drill is told too
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		r.announce(ctx, over)
	}()
	return func() {
		close(over)
		late := time.AfterFunc(announceEnd, cancel)
		<-done
		late.Stop()
		cancel()
	}
}

// announce connects again and again until it has told the end.
func (r *Recorder) announce(ctx context.Context, over <-chan struct{}) {
	said := ""
	for {
		err := r.announceOnce(ctx, over)
		if err == nil || ctx.Err() != nil {
			return
		}
		if said != err.Error() {
			said = err.Error()
			r.cfg.Say("the drill is not announced: %s", said)
		}
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-time.After(announceRetry):
		}
	}
}

// announceOnce announces over one connection; nil: it has told the end.
func (r *Recorder) announceOnce(ctx context.Context, over <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := r.cfg.Announce.dial(ctx)
	if err != nil {
		return err
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	refused := make(chan error, 1)
	go func() { refused <- answers(ctx, c) }()
	tick := time.NewTicker(announceEvery)
	defer tick.Stop()
	for last := false; ; {
		if err := r.publish(ctx, c); err != nil {
			return err
		}
		if last {
			return c.Close(websocket.StatusNormalClosure, "")
		}
		select {
		case err := <-refused:
			return err
		case <-over:
			last = true
		case <-tick.C:
		}
	}
}

// publish sends what there is to tell now.
func (r *Recorder) publish(ctx context.Context, c *websocket.Conn) error {
	text, err := json.Marshal(map[string]any{"op": "publish", "topic": api.AnnouncedTopic + r.cfg.Announce.Drill, "data": r.announcement()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, announcePatience)
	defer cancel()
	return c.Write(ctx, websocket.MessageText, text)
}

// answers reads what the gateway says: nothing, or why it refuses.
func answers(ctx context.Context, c *websocket.Conn) error {
	for {
		_, b, err := c.Read(ctx)
		if err != nil {
			return err
		}
		var m struct{ Op, Error string }
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("answer %.80q: %w", b, err)
		}
		if m.Op == "error" {
			return fmt.Errorf("the gateway refuses: %s", m.Error)
		}
	}
}

func (a *Announce) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, announcePatience)
	defer cancel()
	token, err := a.Token()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DialContext: new(net.Dialer).DialContext} // no proxy: the gateway is near
	defer transport.CloseIdleConnections()
	at, err := url.Parse(a.URL)
	if err == nil && a.TLS != nil {
		transport.TLSClientConfig, err = a.TLS(at.Hostname())
	}
	if err != nil {
		return nil, err
	}
	c, _, err := websocket.Dial(ctx, at.Scheme+"://"+at.Host+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}, //nolint:bodyclose // the connection has it
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	return c, err
}

// announcement is what is told.
func (r *Recorder) announcement() api.Announcement {
	s := r.State()
	out := api.Announcement{Drill: r.cfg.Announce.Drill, Phase: s.Phase, Error: short(s.Error), Now: s.Now, Created: s.Counts.Created, Acknowledged: s.Counts.Acknowledged,
		Rejected: s.Counts.Rejected, Unknown: s.Counts.Unknown, Redundant: s.Redundant, Missing: short(s.Missing), Verdict: s.Verdict, Steps: []api.AnnouncedStep{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.Now()
	for _, k := range r.steps[max(0, len(r.steps)-announcedSteps):] {
		out.Steps = append(out.Steps, api.AnnouncedStep{Index: k.index, What: short(k.rep.What), From: wall(k.rep.From), Injected: wall(k.rep.To), Recovered: wall(k.rep.Healed),
			Served: wall(k.rep.Served), Redundant: wall(k.rep.Redundant), Over: k.over, Failed: short(k.rep.Failed), Witness: k.fault.Witness.State,
			OutageMS: float64(r.outageOf(k, now).Microseconds()) / 1000})
	}
	return out
}

// short cuts a text that others wrote.
func short(text string) string {
	if len(text) > announcedText {
		text = strings.ToValidUTF8(text[:announcedText], "") + "…"
	}
	return text
}
