package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/gateway/stream/console"
	stream "github.com/ordergrid/ordergrid/gateway/stream/listener"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/command"
)

// websocketProtocol is the streams: flags of the listener for WebSocket clients.
type websocketProtocol struct {
	cfg     stream.Config // once check has made it
	listen  []string
	clients string
	tokens  string
	rules   string
	judged  gridTokens
	files   secure.Files
	plain   bool
	origins []string
	console bool
	backlog uint64
	follow  string
	regions []string
	puts    []string
	peers   []string
	peer    struct{ token, ca, name string }
	server  server.Config
}

func (*websocketProtocol) name() string  { return "WebSocket" }
func (*websocketProtocol) hint() string  { return "--websocket ADDRESS for streams" }
func (w *websocketProtocol) asked() bool { return len(w.listen) > 0 }

func (w *websocketProtocol) check() (err error) {
	w.cfg, err = w.config()
	return err
}

func (w *websocketProtocol) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&w.listen, "websocket", nil, "addresses for WebSocket clients, separated by commas; empty: none. See docs/streams.md")
	fl.StringVar(&w.clients, "websocket-clients", "", "JSON file of the clients, by token or certificate, and the topics that each may read; it is read again when it changes")
	fl.StringVar(&w.tokens, "websocket-tokens", "", "directory of the token files that --websocket-clients names; nothing outside of it is read. Default: paths as they are")
	fl.BoolVar(&w.judged.asked, "websocket-grid-tokens", false, "a token that is in no file is judged by the grid, as by its nodes (tokens of Kubernetes): a user of --websocket-clients, or one with the permission Watch, is let in")
	fl.StringVar(&w.rules, "websocket-rules", "", "file of rules as nodes have it (--authorization): a client whose certificate has the permission Watch may read all orders")
	fl.StringVar(&w.files.Cert, "websocket-tls-cert", "", "PEM file of the certificate for WebSocket clients")
	fl.StringVar(&w.files.Key, "websocket-tls-key", "", "PEM file of its private key")
	fl.StringVar(&w.files.CA, "websocket-tls-ca", "", "PEM file of the authorities of clients' certificates")
	fl.StringVar((*string)(&w.files.ClientAuth), "websocket-tls-client-auth", string(secure.NoClientCert), "none (a certificate that is presented has to be valid) or require")
	fl.BoolVar(&w.plain, "websocket-insecure-plain", false, "WebSocket without TLS, for a network that is protected otherwise; tokens are then sent in the clear")
	fl.StringSliceVar(&w.origins, "websocket-origin", nil, "origins of web pages that may connect beside the listener's own, like https://desk.example.com")
	fl.BoolVar(&w.console, "websocket-console", true, "serve the console, a web page, at / of the same addresses")
	fl.Uint64Var(&w.backlog, "websocket-backlog", 50_000, "entries of each partition's log that are read at the start, as far as the grid has them; with --websocket-follow wanted only for a subscription that begins with its last messages")
	fl.StringVar(&w.follow, "websocket-follow", followAll, "what is followed of the grid's logs: all, or wanted, which is what subscriptions of the moment are for")
	fl.StringSliceVar(&w.regions, "websocket-regions", nil, "names of regions whose changes are streamed as topics region.NAME.KEY, separated by commas, or * for all; none by default. It takes the permission Read in the grid")
	fl.StringSliceVar(&w.peers, "websocket-peer", nil, "HOST:PORT of the WebSocket listeners of the deployment's other gateways, separated by commas; each address of a name is one, and this one may be among them. What their clients publish comes to the clients here")
	fl.StringVar(&w.peer.token, "websocket-peer-token", "", "file with the token, in its first line, by which gateways of a deployment know each other")
	fl.StringVar(&w.peer.ca, "websocket-peer-ca", "", "PEM file of the authorities of the other gateways' certificates; default: --websocket-tls-ca")
	fl.StringVar(&w.peer.name, "websocket-peer-name", "", "name that their certificates have to be valid for; default: HOST of --websocket-peer")
	fl.StringSliceVar(&w.puts, "websocket-publish-regions", nil, "names of regions that clients may publish to, where their entries of --websocket-clients let them, separated by commas, or * for all; none by default. It takes the permissions Submit and Write in the grid")
	fl.IntVar(&w.server.Publishing.Messages, "websocket-publish-messages", 1000, "messages that a client may publish in a second, where its entry of --websocket-clients lets it publish")
	fl.IntVar(&w.server.Publishing.Bytes, "websocket-publish-bytes", 4<<20, "bytes of data that a client may publish in a second")
	fl.IntVar(&w.server.Publishing.Message, "websocket-publish-message-bytes", 1<<20, "bytes of data of one message that a client publishes, at most 1048576")
	fl.IntVar(&w.server.Hub.RingBytes, "websocket-ring-bytes", 64<<20, "bytes of messages that are kept for clients that resume; older ones are read from the grid")
	fl.IntVar(&w.server.MaxClients, "websocket-max-connections", 10_000, "connections at the same time")
	fl.IntVar(&w.server.MaxOfOne, "websocket-client-connections", 1000, "of them of one client")
	fl.IntVar(&w.server.MaxUnknown, "websocket-unknown-connections", 64, "of them of one address, before they have logged in")
	fl.IntVar(&w.server.Hub.Limits.Subscriptions, "websocket-subscriptions", 1000, "subscriptions of a connection")
	fl.IntVar(&w.server.Hub.Limits.Queued, "websocket-queued-bytes", 256<<10, "bytes of messages that wait for a slow connection; what is more is by the policy of the subscription")
	fl.IntVar(&w.server.MaxMemory, "websocket-memory-bytes", 256<<20, "bytes of the buffers of all connections")
	fl.DurationVar(&w.server.Handshake, "websocket-login-timeout", server.DefaultHandshake, "for the opening request, and for the login")
	fl.DurationVar(&w.server.WriteStall, "websocket-write-timeout", server.DefaultWriteStall, "for a connection that takes nothing")
}

// Values of --websocket-follow.
const (
	followAll    = "all"
	followWanted = "wanted"
)

// config reads the files, and refuses what would not protect the orders.
func (w *websocketProtocol) config() (stream.Config, error) {
	cfg := stream.Config{Listen: w.listen, Backlog: w.backlog, OnlyWanted: w.follow == followWanted, Regions: w.regions, PublishRegions: w.puts, Server: w.server}
	bad := func(err error) (stream.Config, error) { return cfg, command.BadUsage(err) }
	switch {
	case w.follow != followAll && w.follow != followWanted:
		return bad(fmt.Errorf("--websocket-follow: value %q, allowed: %s, %s", w.follow, followAll, followWanted))
	case w.clients == "" && w.rules == "" && !w.judged.asked:
		return bad(errors.New(`--websocket-clients, --websocket-rules: value "", allowed: a file, for one of them or both, or --websocket-grid-tokens; without them no client could read, or each`))
	case w.judged.asked && w.plain:
		return bad(errors.New("--websocket-grid-tokens: --websocket-insecure-plain is given too, allowed: TLS (--websocket-tls-cert): such a token is good for more than this gateway"))
	}
	for _, b := range []struct {
		flag   string
		v, min int
	}{{"ring-bytes", w.server.Hub.RingBytes, 1 << 20}, {"max-connections", w.server.MaxClients, 1}, {"client-connections", w.server.MaxOfOne, 1}, {"unknown-connections", w.server.MaxUnknown, 1},
		{"subscriptions", w.server.Hub.Limits.Subscriptions, 1}, {"queued-bytes", w.server.Hub.Limits.Queued, 1 << 10}, {"memory-bytes", w.server.MaxMemory, 1 << 20},
		{"publish-messages", w.server.Publishing.Messages, 1}, {"publish-bytes", w.server.Publishing.Bytes, 1}, {"publish-message-bytes", w.server.Publishing.Message, 1}} {
		if b.v < b.min {
			return bad(fmt.Errorf("--websocket-%s: value %d, allowed: %d or more", b.flag, b.v, b.min))
		}
	}
	switch {
	case w.server.Publishing.Message > 1<<20:
		return bad(fmt.Errorf("--websocket-publish-message-bytes: value %d, allowed: 1 to %d", w.server.Publishing.Message, 1<<20))
	case (len(w.peers) > 0) != (w.peer.token != ""):
		return bad(errors.New("--websocket-peer, --websocket-peer-token: one of them is given, allowed: both or none: gateways know each other by the token"))
	}
	for _, at := range w.peers {
		if host, port, err := net.SplitHostPort(at); err != nil || host == "" || port == "" {
			return bad(fmt.Errorf("--websocket-peer: value %q, allowed: HOST:PORT", at))
		}
	}
	if err := stream.CheckRegions(w.regions); err != nil {
		return bad(fmt.Errorf("--websocket-regions: %w", err))
	}
	if err := stream.CheckRegions(w.puts); err != nil {
		return bad(fmt.Errorf("--websocket-publish-regions: %w", err))
	}
	var err error
	if cfg.Access, err = stream.OpenAccess(stream.Files{Clients: w.clients, Tokens: w.tokens, Rules: w.rules, Judge: w.judged.asker(), Peer: w.peer.token}); err != nil {
		return bad(fmt.Errorf("--websocket-clients, --websocket-rules, --websocket-peer-token: %w", err))
	}
	given := w.files.Cert != "" || w.files.Key != "" || w.files.CA != ""
	switch {
	case given == w.plain:
		return bad(errors.New("--websocket-tls-cert, --websocket-insecure-plain: both or none is given, allowed: one of them"))
	case w.plain && cfg.Access.NeedsCertificate():
		return bad(errors.New("--websocket-insecure-plain: a client has a certificate, or --websocket-rules is given, allowed: TLS (--websocket-tls-cert, --websocket-tls-key, --websocket-tls-ca)"))
	case given:
		if cfg.TLS, err = secure.Load(w.files); err != nil {
			return bad(fmt.Errorf("--websocket-tls-cert, --websocket-tls-key, --websocket-tls-ca, --websocket-tls-client-auth: %w", err))
		}
	}
	if len(w.peers) > 0 {
		cfg.Peers = &stream.Peers{Addresses: w.peers, TokenFile: w.peer.token}
		if given {
			files := secure.Files{Cert: w.files.Cert, Key: w.files.Key, CA: cmp.Or(w.peer.ca, w.files.CA), Name: w.peer.name}
			id, err := secure.Load(files)
			if err != nil {
				return bad(fmt.Errorf("--websocket-peer-ca: %w", err))
			}
			cfg.Peers.TLS = id.Client
		}
	}
	cfg.Server.Origins = w.origins
	cfg.Server.Hub.Limits.Buffered = min(32<<10, w.server.Hub.Limits.Queued)
	if w.console {
		cfg.Pages = console.Pages()
	}
	return cfg, nil
}

// open listens; the grid's log is followed once Run is called.
func (w *websocketProtocol) open(_ context.Context, g grid) (listener, error) {
	w.cfg.Client, w.cfg.Grid, w.cfg.Logger = g.Client, g.common.grid, g.log
	if err := w.judged.open(g, "--websocket-grid-tokens", "order-gateway-streams"); err != nil {
		return nil, err
	}
	l, err := stream.New(w.cfg)
	if err != nil {
		return nil, err
	}
	return streams{l, l.Collector()}, nil
}

// streams is the listener with its metrics.
type streams struct {
	*stream.Listener
	prometheus.Collector
}

func (s streams) Status() any { return s.Listener.Status() }
