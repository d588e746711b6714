// Package recorder is the independent witness of a drill: one process with one clock that sends
// orders to a grid, keeps a ledger of the answers, observes when service and redundancy are lost
// and restored, and at the end reads the whole grid over the network and judges. It injects
// nothing; the injector notifies it over HTTP (package probe/drill/api).
package recorder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/drill/collect"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Config of a recorder.
type Config struct {
	Endpoints []string   // host:port of grid nodes, or of the grid's client service
	TLS       client.TLS // nil: plain TCP
	GridToken client.TokenSource
	Grid      string // its name; "" takes the one that answers
	Replicas  int    // configured copies of every order
	Probes    int    // streams of orders, each bound to a partition, in turn
	Rate      int    // orders per second of each probe
	Sessions  int    // client sessions of each probe
	Reads     int    // confirmed reads per second at every node
	Orders    int    // orders per second at every node, beside the probes
	FIX       fixorder.Version
	// Auctions is how often each book of a grid that matches has a call and its auction; 0: never.
	// For three quarters of the time it collects orders. The permission Admin is needed.
	Auctions time.Duration
	Timeout  time.Duration // of an order, all retries included; then its outcome is unknown
	Seed     uint64

	// Patience is how long connecting, copies and sinks may take.
	Patience time.Duration
	// GapLimit is the longest time a session may be without an acknowledgement in a calm
	// time.
	GapLimit time.Duration
	// MaxOrders bounds the ledger; 0: what the memory limit allows.
	MaxOrders int64

	// NoSink is why nothing downstream is compared, for example because its files are deleted with
	// their pods; "": the nodes are queried for the files of their sinks.
	NoSink string
	// Sinks are read instead of those files: the far side of a sink, or another site.
	Sinks collect.Sinks
	// Dial makes the connections to the grid; nil: over TCP. A drill of two sites leads clients from one to the other.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Announce tells the clients of a stream gateway how the drill proceeds; nil: no announcements.
	Announce *Announce

	Token string // required by /v1
	// NodePort is the HTTP port of grid nodes, which report changes of their configuration;
	// NodeHTTP are addresses (host:port) instead, where each has its own.
	NodePort int
	NodeHTTP []string
	// Dir is the directory of history and certificate.
	Dir string
	// TTL is how long they are served after the end.
	TTL time.Duration
	// Say prints progress.
	Say func(format string, args ...any)
}

// Bounds of Config.
const (
	maxProbes   = fixorder.MaxProbes
	maxSessions = 64
	maxRate     = 1_000_000
)

// Check validates a configuration, by the flags of order-probe drill.
func (c *Config) Check() error {
	if len(c.Endpoints) == 0 {
		return errors.New("--endpoint: name the grid's client service, such as trades-client:7400")
	}
	for _, b := range []struct {
		flag          string
		got, low, top int
	}{
		{"replicas", c.Replicas, 1, 3}, {"probes", c.Probes, 1, maxProbes}, {"rate", c.Rate, 1, maxRate}, {"sessions", c.Sessions, 1, maxSessions},
		{"reads", c.Reads, 0, maxRate}, {"direct-orders", c.Orders, 0, maxRate}, {"node-port", c.NodePort, 0, 65535},
	} {
		if b.got < b.low || b.got > b.top {
			return fmt.Errorf("--%s %d: must be %d to %d", b.flag, b.got, b.low, b.top)
		}
	}
	for _, b := range []struct {
		flag      string
		got       time.Duration
		low, high time.Duration
	}{
		{"timeout", c.Timeout, 100 * time.Millisecond, 10 * time.Minute}, {"patience", c.Patience, time.Second, time.Hour},
		{"auctions", c.Auctions, 0, time.Hour}, {"gap-limit", c.GapLimit, 10 * time.Millisecond, time.Hour}, {"ttl", c.TTL, 0, 30 * 24 * time.Hour},
	} {
		if b.got < b.low || b.got > b.high {
			return fmt.Errorf("--%s %s: must be %s to %s", b.flag, b.got, b.low, b.high)
		}
	}
	if err := c.FIX.Check(); err != nil {
		return fmt.Errorf("--fix: %w", err)
	}
	if c.MaxOrders < 0 {
		return fmt.Errorf("--max-orders %d: must be more than 0; leave it out for what the memory limit allows", c.MaxOrders)
	}
	if c.Announce != nil {
		if err := c.Announce.check(); err != nil {
			return err
		}
	}
	for _, a := range c.NodeHTTP {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("--node-http %q: must be host:port: %w", a, err)
		}
	}
	return nil
}
