package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// IO chooses how sessions read and write their socket. docs/client.md has the
// measured difference.
type IO uint8

const (
	// IOAuto is the best measured choice for shared cores: IOBlocking for a
	// Session of one's own, IONet for the sessions that all callers of
	// Client.Submit share, and where there is no other choice.
	IOAuto IO = iota
	// IONet is the net package: right for thousands of sessions in a process.
	IONet
	// IOBlocking waits in a blocking system call on the calling goroutine's
	// thread (Linux).
	IOBlocking
	// IOPinned is IOBlocking that keeps its scheduler slot (P) while it waits,
	// for up to 10 ms at a time and never the last one. For probes and gateways with
	// few sessions, GOMAXPROCS at least sessions+2 (Linux).
	IOPinned
)

var ioNames = [...]string{"auto", "net", "blocking", "pinned"}

// String is the word ParseIO reads.
func (m IO) String() string {
	if int(m) < len(ioNames) {
		return ioNames[m]
	}
	return fmt.Sprintf("IO(%d)", uint8(m))
}

// ParseIO reads auto, net, blocking or pinned.
func ParseIO(s string) (IO, error) {
	for i, name := range ioNames {
		if s == name {
			return IO(i), nil
		}
	}
	return 0, fmt.Errorf("client: IO is %.40q, allowed: auto, net, blocking, pinned", s)
}

// Config of a Client. Only Endpoints is required.
type Config struct {
	// Endpoints are "host:port" of any nodes or of the grid's client service.
	// One that answers is enough; the table names the others.
	Endpoints []string
	// Grid is the grid's name; a node of another grid is refused. Empty: take
	// the grid that answers.
	Grid string
	// Name is shown in the node's logs. Default "client".
	Name string
	// DialTimeout bounds Dial and Session as a whole. Default 5 s.
	DialTimeout time.Duration
	// RequestTimeout bounds a Submit or read whose context has no deadline,
	// and every SubmitAsync. It includes all retries. Default 5 s.
	RequestTimeout time.Duration
	// MaxInFlight bounds the unanswered orders of one session; the node's own
	// window lowers it. Default 1024.
	MaxInFlight int
	// SuspectAfter is how long a primary may owe an answer before other nodes
	// are asked whether it still is the primary. Default 200 ms.
	SuspectAfter time.Duration
	// TableEvery is about how often the table is asked for while all is well, so
	// that replicas at new addresses are known before they are needed. Default
	// 10 s, shortly after a session sees a new epoch as well.
	TableEvery time.Duration
	// RetryMax bounds the pause between two attempts to reconnect. Default 250 ms.
	RetryMax time.Duration
	// IO is how sessions use their socket. Default IOAuto.
	IO IO
	// Dial replaces net.Dialer for every connection, for example to go through a
	// tunnel. address is "host:port": an endpoint, or what the table says.
	// Anything but a *net.TCPConn is used as with IONet.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS makes every connection TLS 1.3, with the certificate to present to the
	// nodes: TLSFiles reads PEM files, TLSConfig takes a tls.Config. nil: plain TCP.
	// IO counts as without: the record layer sits on the same socket.
	TLS TLS
	// Token proves the client's identity where the certificate does not, or carries less: for
	// example TokenFile of a projected Kubernetes service account token. It is sent over TLS only.
	// nil: the certificate is the client's identity.
	Token TokenSource
	// OnOutage is called after every outage of a session, on a goroutine of its
	// own. Default: nothing is called; Outages() has the last ones.
	OnOutage func(Outage)
	// BySymbol routes orders by their symbol (tag 55) in place of their ClOrdID, as a grid
	// that matches needs it: an order, and what cancels or replaces it, meet in one book. Needed
	// before nodes only that do not say it themselves, as those of an earlier release do not.
	BySymbol bool
	// OnExecutions gets what happened to orders of this client's sessions in a grid that
	// matches: those of a session in the order of the partition's log, each once per
	// connection, behind the receipt of the order that caused them if that is the session's
	// own. What happens while no connection is open is not among them: ReadExecutions has
	// everything. It is called while the session is locked, so it must not call the session
	// or the client, nor block.
	OnExecutions func([]Execution)
	// Logger gets reconnects (Info) and violations of the protocol (Error).
	// Default: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Endpoints) == 0 {
		return c, fmt.Errorf("client: Config.Endpoints is empty, allowed: one host:port or more, for example 127.0.0.1:7400")
	}
	for i, e := range c.Endpoints {
		if _, port, err := net.SplitHostPort(e); err != nil || port == "" {
			return c, fmt.Errorf("client: Config.Endpoints[%d] is %.80q, allowed: host:port, for example 127.0.0.1:7400", i, e)
		}
	}
	if len(c.Grid) > wire.MaxString || len(c.Name) > wire.MaxString {
		return c, fmt.Errorf("client: Config.Grid has %d bytes and Config.Name %d, allowed: at most %d each", len(c.Grid), len(c.Name), wire.MaxString)
	}
	if c.MaxInFlight < 0 || c.MaxInFlight > maxWindow {
		return c, fmt.Errorf("client: Config.MaxInFlight is %d, allowed: 1..%d, or 0 for %d", c.MaxInFlight, maxWindow, defaultInFlight)
	}
	if c.Token != nil && c.TLS == nil {
		return c, fmt.Errorf("client: Config.Token without Config.TLS, allowed: both; a token over plain TCP can be read by third parties")
	}
	if c.IO > IOPinned {
		return c, fmt.Errorf("client: Config.IO is %d, allowed: IOAuto, IONet, IOBlocking, IOPinned", c.IO)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		usual time.Duration
	}{
		{"DialTimeout", &c.DialTimeout, 5 * time.Second},
		{"RequestTimeout", &c.RequestTimeout, 5 * time.Second},
		{"SuspectAfter", &c.SuspectAfter, 200 * time.Millisecond},
		{"RetryMax", &c.RetryMax, 250 * time.Millisecond},
		{"TableEvery", &c.TableEvery, 10 * time.Second},
	} {
		if *d.value < 0 || *d.value > 0 && *d.value < time.Millisecond {
			return c, fmt.Errorf("client: Config.%s is %s, allowed: 1 ms or more, or 0 for %s", d.name, *d.value, d.usual)
		}
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = defaultInFlight
	}
	if c.Name == "" {
		c.Name = "client"
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Endpoints = append([]string(nil), c.Endpoints...)
	return c, nil
}

const (
	defaultInFlight = 1024
	// maxWindow bounds what a node can make a session allocate.
	maxWindow = 1 << 16
)
