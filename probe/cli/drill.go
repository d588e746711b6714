package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
	"github.com/ordergrid/ordergrid/internal/webguard"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

type drillFlags struct {
	cfg    recorder.Config
	tls    tlsflag.Flags
	fix    string
	http   string
	secure struct{ cert, key, ca string }
	say    struct{ url, name, token, ca string }
	seed   int64
}

func drillCommand() *cobra.Command {
	f := drillFlags{}
	cmd := &cobra.Command{
		Use:   "drill --endpoint HOST:PORT --replicas N",
		Short: "Run the recorder of a FailoverDrill: orders, ledger, certificate (started by the operator)",
		Long: `Run the recorder of a FailoverDrill. Sends orders to a grid, keeps a ledger of
the answers, observes when service and redundancy are lost and restored, and is
notified over HTTP (see docs/drills.md) when a fault begins and ends. When requested,
or stopped by SIGTERM or Ctrl-C, it reads every copy of every log and the sinks,
judges, and keeps history and certificate in --dir. It injects nothing.

The HTTP interface requires the token in $` + api.TokenVariable + `, and listens on this machine only
unless it has a certificate.

Exit codes: 0 there is a certificate, whatever its verdict (order-probe certify shows
it), 2 wrong command line, 4 there is none.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set, c := cmd.Flags(), &f.cfg
	set.StringSliceVar(&c.Endpoints, "endpoint", nil, "host:port of the grid's client service, or of one or more nodes")
	set.StringVar(&c.Grid, "grid", "", "name of the grid; empty takes the one that answers")
	f.tls.Register(set, "TLS is used for the grid")
	f.tls.RegisterToken(set)
	set.IntVar(&c.Replicas, "replicas", 2, "configured copies of every order")
	set.IntVar(&c.Probes, "probes", 2, "probes, each bound to a partition, in turn")
	set.IntVar(&c.Rate, "rate", 1000, "orders per second of each probe")
	set.IntVar(&c.Sessions, "sessions", 4, "client sessions of each probe")
	set.IntVar(&c.Reads, "reads", 100, "confirmed reads per second at every node")
	set.IntVar(&c.Orders, "direct-orders", 20, "orders per second at every node, beside the probes")
	set.DurationVar(&c.Auctions, "auctions", 0, "of a grid that matches: how often each book collects orders, for three quarters of that time, and is uncrossed; 0: never")
	set.StringVar(&f.fix, "fix", string(fixorder.FIX42), "FIX version of the orders: 4.2, 4.4 or 5.0SP2")
	set.DurationVar(&c.Timeout, "timeout", 10*time.Second, "time after which the outcome of an unanswered order is called unknown")
	set.Int64Var(&f.seed, "seed", 0, "of the recorder's random choices; 0: random")
	set.DurationVar(&c.Patience, "patience", time.Minute, "how long connecting, and reading a copy or sink at the end, may take")
	set.DurationVar(&c.GapLimit, "gap-limit", 250*time.Millisecond, "longest time a session may be without an acknowledgement in a calm time; at least four times that between two orders of a session")
	set.Int64Var(&c.MaxOrders, "max-orders", 0, "orders the ledger has room for (default: what the memory limit allows)")
	set.IntVar(&c.NodePort, "node-port", 9400, "HTTP port of grid nodes, to query changes of their configuration; 0: not queried")
	set.StringSliceVar(&c.NodeHTTP, "node-http", nil, "host:port of the nodes' HTTP ports, where each has its own")
	set.StringVar(&c.NoSink, "no-sink", "", "why nothing downstream is compared, for the certificate (default: the nodes are queried for the files of their sinks)")
	set.StringVar(&c.Dir, "dir", "drill", "directory for history and certificate")
	set.DurationVar(&c.TTL, "ttl", time.Hour, "how long to serve them after the end")
	set.StringVar(&f.http, "http", fmt.Sprintf("127.0.0.1:%d", api.Port), "address to serve at; a non-local one requires a certificate")
	set.StringVar(&f.say.url, "announce", "", "wss://HOST:PORT of a stream gateway whose consoles show the drill as it happens, or ws:// on this machine; empty: none")
	set.StringVar(&f.say.name, "announce-name", "drill", "name of the drill there: topic "+api.AnnouncedTopic+"NAME")
	set.StringVar(&f.say.token, "announce-token-file", "", "file with the token of a client of that gateway that may publish to this topic, read anew for each connection")
	set.StringVar(&f.say.ca, "announce-ca", "", "PEM file of the authorities of that gateway's certificate (default: those of this machine)")
	set.StringVar(&f.secure.cert, "http-cert", "", "file with the certificate to serve with, in PEM (default: plain HTTP)")
	set.StringVar(&f.secure.key, "http-key", "", "file with its private key, in PEM")
	set.StringVar(&f.secure.ca, "http-ca", "", "file with the authority, in PEM, whose certificate "+api.MetricsReader+" may get /metrics (default: the token alone)")
	return cmd
}

func (f *drillFlags) run(cmd *cobra.Command) error {
	c := &f.cfg
	c.FIX, c.Token = fixorder.Version(f.fix), os.Getenv(api.TokenVariable)
	if c.Token == "" {
		return usage(fmt.Errorf("$%s is empty: set the token of the drill's requests", api.TokenVariable))
	}
	var err error
	c.GridToken = f.tls.Token()
	if c.TLS, err = f.tls.Client(); err != nil {
		return usage(err)
	}
	if c.Announce, err = f.announce(); err != nil {
		return usage(err)
	}
	for c.Seed = uint64(f.seed); c.Seed == 0; {
		c.Seed = drawSeed()
	}
	out := &lines{w: cmd.OutOrStdout()}
	c.Say = out.say
	r, err := recorder.New(*c)
	if err != nil {
		return usage(err)
	}
	l, err := f.listen(cmd.Context())
	if err != nil {
		return usage(err)
	}
	server := r.Server()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			out.say("http: %v", err)
		}
	}()
	defer func() { _ = server.Close(); <-served }()
	out.say("listening at %s", l.Addr())
	if err := r.Run(cmd.Context()); err != nil {
		f.linger(cmd.Context(), failedTTL) // so that clients can read the reason
		return err
	}
	out.say("verdict %s; history and certificate are in %s and served for %s", r.State().Verdict, c.Dir, c.TTL)
	f.linger(cmd.Context(), c.TTL)
	return nil
}

// announce is where the drill is announced; nil without.
func (f *drillFlags) announce() (*recorder.Announce, error) {
	s := &f.say
	if s.url == "" {
		if s.token != "" || s.ca != "" {
			return nil, errors.New(`--announce "": --announce-token-file and --announce-ca are for it: name the gateway`)
		}
		return nil, nil
	}
	a := &recorder.Announce{URL: s.url, Drill: s.name}
	if s.token != "" {
		a.Token = client.TokenFile(s.token)
	}
	if s.ca != "" {
		a.TLS = client.TLSAuthority(s.ca, "")
	}
	return a, nil
}

// listen with TLS, or on this machine only: requests carry the drill's token.
func (f *drillFlags) listen(ctx context.Context) (net.Listener, error) {
	secure, err := f.identity()
	if err != nil {
		return nil, err
	}
	l, err := webguard.Listen(ctx, f.http, webguard.Limits{})
	if err != nil {
		return nil, fmt.Errorf("--http %s: %w; allowed: a free ip:port", f.http, err)
	}
	if secure != nil {
		return tls.NewListener(l, secure), nil
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("--http %s is reachable from other machines, and the token would be sent in the clear: give --http-cert and --http-key, or an address such as 127.0.0.1:%d", f.http, api.Port), l.Close())
	}
	return l, nil
}

// identity is the recorder's certificate; nil is plain HTTP.
func (f *drillFlags) identity() (*tls.Config, error) {
	s := &f.secure
	if s.cert == "" && s.key == "" && s.ca == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, fmt.Errorf("--http-cert %q, --http-key %q: %w", s.cert, s.key, err)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair}}
	if s.ca == "" {
		return secure, nil
	}
	text, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, fmt.Errorf("--http-ca: %w", err)
	}
	secure.ClientCAs, secure.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !secure.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--http-ca %s: there is no certificate in PEM", s.ca)
	}
	return secure, nil
}

// failedTTL is how long a recorder without a certificate serves its error.
const failedTTL = time.Minute

// linger waits, unless the process is stopped.
func (f *drillFlags) linger(ctx context.Context, ttl time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(min(ttl, max(f.cfg.TTL, 0))):
	}
}

func drawSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	n := uint64(0)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// lines prints progress, one line at a time, with the time of day.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, "%s  %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}
