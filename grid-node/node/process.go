package node

import (
	"context"
	"log/slog"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// identity is the identity and configuration of a node. It is constant after New: every
// thread reads it.
type identity struct {
	cfg   Config
	log   *slog.Logger
	self  string // member id
	boot  uint64
	trust *peerTrust
}

func newIdentity(cfg Config) identity {
	boot := newBootID()
	return identity{cfg: cfg, boot: boot, self: wire.FormatMemberID(cfg.Pod, boot), log: cfg.Log.With("pod", cfg.Pod, "bootID", wire.FormatBootID(boot)),
		trust: &peerTrust{keys: cfg.PeerKeys, insecure: cfg.InsecurePeers}}
}

// newHello returns the Hello of a dialling node.
func (id *identity) newHello(role wire.Role) []byte {
	return wire.AppendHello(nil, &wire.Hello{
		MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: role, BootID: id.boot,
		Grid: []byte(id.cfg.Grid), Member: []byte(id.self), Address: []byte(id.cfg.Advertise),
	})
}

// appendWelcome appends the node's Welcome, with the negotiated version.
func (id *identity) appendWelcome(dst []byte, version uint16) []byte {
	return wire.AppendWelcome(dst, &wire.Welcome{Version: version, Features: uint16(wire.Features), MaxFrame: wire.MaxFrame, Window: sessionWindow, Grid: []byte(id.cfg.Grid), Member: []byte(id.self)})
}

// process is what the parts of a node share.
type process struct {
	identity
	loop transport.Loop // the data loop; Post is for every thread

	ctx      context.Context // ends with the node: arbiter calls, sinks
	cancel   context.CancelFunc
	wg       sync.WaitGroup // goroutines that end with ctx
	registry *metrics.Registry

	// Of the data loop.
	counters metrics.NodeCounters
	loopStat metrics.LoopHistograms
	alarms   alarmLog
}

// now is the time of the wake-up, on the data loop.
func (p *process) now() replica.Time {
	c := p.loop.Clock()
	return replica.Time{Mono: c.Mono(), Wall: c.Wall()}
}

// onLoop runs f on the data loop and waits, from any other goroutine. After an error f has
// not run, and will not.
func (p *process) onLoop(f func()) error { return runOn(p.loop, f) }

// limited calls f, which writes to the log, at most once a second for a key; on the data loop.
func (p *process) limited(key string, f func()) { p.alarms.limited(p.loop.Clock().Mono(), key, f) }

// badFrame counts an invalid frame, and ends its connection.
func (p *process) badFrame(l *link, code uint16, text string) error {
	p.counters.BadFrames++
	return l.goaway(code, text)
}
