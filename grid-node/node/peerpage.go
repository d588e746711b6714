package node

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// maxPageConns bounds the page: only nodes with false addresses make more connections.
const maxPageConns = 256

// servePeers asks the kernel about every connection to another node, each on the thread of
// its loop, on request only.
func (h *pages) servePeers(w http.ResponseWriter, _ *http.Request) {
	conns, err := h.connections()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	names := map[string]string{}
	for i := range conns {
		c := &conns[i]
		local, err := netip.ParseAddrPort(c.Local)
		if err != nil {
			continue
		}
		ip := local.Addr().String()
		if _, known := names[ip]; !known {
			names[ip] = interfaceOf(local.Addr()) // asks the system: not on a loop
		}
		c.Interface = names[ip]
	}
	writePage(w, nodestatus.Peers{Pod: h.data.cfg.Pod, BootID: wire.FormatBootID(h.data.boot), Connections: conns})
}

// connections of both loops, in the order of pods and kinds.
func (h *pages) connections() ([]nodestatus.Connection, error) {
	var data, live []nodestatus.Connection // each belongs to its loop until that has answered
	if err := h.data.onLoop(func() { data = h.data.peers.connections() }); err != nil {
		return nil, err
	}
	if err := runOn(h.live.loop, func() { live = h.live.connections() }); err != nil {
		return nil, err
	}
	all := append(append([]nodestatus.Connection{}, data...), live...)
	slices.SortStableFunc(all, func(a, b nodestatus.Connection) int {
		if c := strings.Compare(a.Member, b.Member); c != 0 {
			return c
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return all[:min(len(all), maxPageConns)], nil
}

// connections of the data loop; on it.
func (ps *peers) connections() (out []nodestatus.Connection) {
	ps.eachLink(func(kind, address string, l *link, written bool) {
		if len(out) < maxPageConns {
			c := describe(l.conn)
			c.Kind, c.Member, c.Address, c.Written, c.Version, c.Protection = kind, l.name, address, written, int(l.version), l.by.String()
			c.Pod, _, _ = strings.Cut(l.name, "/")
			out = append(out, c)
		}
	})
	return out
}

// eachLink calls f for the connections to other nodes that stand.
func (ps *peers) eachLink(f func(kind, address string, l *link, written bool)) {
	open := func(kind, address string, l *link, written bool) {
		if l != nil && l.state == ready && l.conn.Open() {
			f(kind, address, l, written)
		}
	}
	for _, p := range ps.byAddr {
		for _, l := range p.links {
			open(nodestatus.KindPeer, p.addr, l, l == p.out)
		}
		open(nodestatus.KindBulk, p.addr, p.bulk.link, true)
	}
	for _, l := range ps.bulkIn {
		open(nodestatus.KindBulk, "", l, false)
	}
}

// connections of the liveness loop; on it.
func (l *liveness) connections() (out []nodestatus.Connection) {
	now := l.now().Mono
	add := func(c *transport.Conn, p *pulse) {
		if c == nil || p.state != ready || !c.Open() || len(out) >= maxPageConns {
			return
		}
		d := describe(c)
		d.Kind, d.Member, d.Address, d.Written, d.Version, d.Protection = nodestatus.KindLiveness, p.member, p.addr, c.Dialled(), int(p.version), p.by.String()
		d.Pod, _, _ = strings.Cut(p.member, "/")
		if p.heardAt != 0 {
			d.HeardAgoNs = max(1, now-p.heardAt)
		}
		out = append(out, d)
	}
	for _, p := range l.pulses {
		add(p.conn, p)
	}
	for c, p := range l.heard {
		add(c, p)
	}
	return out
}

// describe is what the transport and the kernel know of a connection; on its loop.
func describe(c *transport.Conn) nodestatus.Connection {
	d := nodestatus.Connection{Dialled: c.Dialled(), Remote: c.Remote(), Buffered: int64(c.Buffered())}
	s, err := c.Socket()
	if err != nil {
		d.Error = err.Error()
	}
	if s.Local.IsValid() {
		d.Local = s.Local.String()
	}
	if s.Remote.IsValid() {
		d.Remote = s.Remote.String()
	}
	if t := s.TCP; t != nil {
		d.TCP = &nodestatus.TCP{
			State: t.State, RTTNs: int64(t.RTT), RTTVarNs: int64(t.RTTVar), MinRTTNs: int64(t.MinRTT), RTONs: int64(t.RTO),
			Retransmits: t.Retransmits, DSACKDups: t.DSACKDups, OutOfOrder: t.OutOfOrder, SegsOut: t.SegsOut, SegsIn: t.SegsIn, Unacked: t.Unacked, NotSent: t.NotSent, BytesAcked: t.BytesAcked, BytesReceived: t.BytesReceived,
			SentAgoNs: int64(t.LastSent), ReceivedAgoNs: int64(t.LastReceived), LastAckedAgoNs: int64(t.LastAck),
		}
	}
	return d
}

// appendPeerLink is what metrics show of a connection to another node; on the loop.
func appendPeerLink(to []metrics.PeerLink, l *link) []metrics.PeerLink {
	s, err := l.conn.Socket()
	if err != nil || s.TCP == nil || len(to) > metrics.MaxPeerLinks {
		return to
	}
	pod, _, _ := strings.Cut(l.name, "/")
	return append(to, metrics.PeerLink{Pod: pod, RTT: int64(s.TCP.RTT), RTTVar: int64(s.TCP.RTTVar), ReceivedAgo: int64(s.TCP.LastReceived),
		Retransmits: s.TCP.Retransmits, Unacked: s.TCP.Unacked, BytesAcked: s.TCP.BytesAcked, BytesReceived: s.TCP.BytesReceived})
}
