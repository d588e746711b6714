package listener

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// metrics export the listener as it is when they are gathered.
type metrics struct {
	l           *Listener
	anew        atomic.Uint64
	unpublished atomic.Uint64
	histories   atomic.Uint64
	fed         atomic.Uint64
	// Selectors that nodes are asked for, and how often they were told others.
	selectors, selections atomic.Uint64
	everything            atomic.Uint64 // 1: it is followed
	incomplete            atomic.Uint64 // subscriptions without a partition that is away
	// Questions about books that were answered, and those that failed.
	bookReads, bookFailures atomic.Uint64

	mu     sync.Mutex
	delays histogram.Histogram // from the receipt by the primary to the publishing
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ordergrid_stream_"+name, help, labels, nil)
}

var (
	descClients       = describe("clients", "WebSocket clients that are connected.")
	descUnknown       = describe("unknown_connections", "Connections that have not logged in.")
	descSubscriptions = describe("subscriptions", "Subscriptions of all clients.")
	descWaiting       = describe("waiting_subscriptions", "Subscriptions for which messages wait: their flush interval has not ended, or their client is slow.")
	descPublished     = describe("published_total", "Messages published, wanted by a client or not; of books those that are wanted.")
	descUnwanted      = describe("unwanted_total", "Messages published that no subscription wanted.")
	descDelivered     = describe("delivered_total", "Messages delivered, to a subscription each.")
	descConflated     = describe("conflated_total", "Messages replaced by a later one of their topic before they were sent.")
	descDropped       = describe("dropped_total", "Messages not sent to a slow client and told in a gap.")
	descGaps          = describe("gaps_total", "Gaps told.")
	descEnded         = describe("disconnected_total", "Clients disconnected because they were slow, by their policy.")
	descRefused       = describe("refused_total", "Clients and connections refused, by reason: login (token, certificate, or connections of the client), late (no request or login in time), crowd (connections of an address without a login), full (all connections, or the TLS handshake failed).", "reason")
	descHistories     = describe("histories_total", "Turns of subscriptions to have their history read from the grid, since it had left the ring, or was wanted by no client.")
	descFed           = describe("history_messages_total", "Orders read from the grid for them.")
	descSelectors     = describe("wanted_selectors", "Selectors that the nodes are asked for: accounts, symbols and pairs of them that subscriptions name; 0 while everything is followed, see following_everything.")
	descEverything    = describe("following_everything", "1 while everything is followed: --websocket-follow is all, or subscriptions name more than nodes take.")
	descIncomplete    = describe("incomplete_subscriptions", "Subscriptions that get nothing of some partition yet, as no node of it has said that it sends what they are for; they get it from the log then.")
	descSelections    = describe("selections_total", "Times the nodes were told other selectors.")
	descAnew          = describe("restarts_total", "Times all clients had to connect again, because a partition has another history or freed entries that were not read.")
	descUnpublished   = describe("unpublished_total", "Orders that could not be published; each is in the log of the gateway.")
	descBooks         = describe("books", "Books that clients want, of a partition: ladders, and books order by order.", "partition")
	descBookReads     = describe("book_reads_total", "Books read from the grid.")
	descBookFailures  = describe("book_failures_total", "Books that could not be read from the grid, or not in time; each is tried again.")
	descUser          = describe("user_messages_total", "Messages of clients that were published, by where: here, peer, at another gateway, or grid, stored in a region.", "at")
	descUserRefused   = describe("user_refused_total", "Messages of clients that were refused, by reason: permission, limit (rate, length, or messages that are being stored), invalid, grid (it has not stored it, or has not answered).", "reason")
	descPeers         = describe("peers", "Other gateways of the deployment that are known of.")
	descPeersThere    = describe("peers_connected", "Other gateways from which comes what their clients publish.")
	descPeersLost     = describe("peer_gaps_total", "Times when messages of clients of another gateway may have been lost, and subscriptions were told so.")
	descSent          = describe("sent_bytes_total", "Bytes sent to clients.")
	descRead          = describe("read_sequence", "Last log entry of a partition that was read.", "partition")
	descLag           = describe("lag_entries", "Committed log entries that are known of and not read yet.", "partition")
	descFailing       = describe("failing", "1 while the log of a partition cannot be read.", "partition")
	descDelay         = describe("delay_seconds", "From the receipt of an order by the primary to its publishing here, by the clocks of both; without what was there when the gateway started.")
)

func newMetrics(l *Listener) *metrics { return &metrics{l: l} }

func (m *metrics) observe(ns int64) {
	m.mu.Lock()
	m.delays.Observe(ns)
	m.mu.Unlock()
}

// Collector exports the metrics of the Listener.
func (l *Listener) Collector() prometheus.Collector { return l.metrics }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descClients, descUnknown, descSubscriptions, descWaiting, descPublished, descUnwanted, descDelivered, descConflated, descDropped,
		descGaps, descEnded, descRefused, descHistories, descFed, descSelectors, descSelections, descEverything, descIncomplete, descAnew, descUnpublished, descUser, descUserRefused, descPeers, descPeersThere, descPeersLost, descBooks, descBookReads, descBookFailures, descSent, descRead, descLag, descFailing, descDelay} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, t prometheus.ValueType, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, t, float64(v), labels...)
	}
	put(descAnew, prometheus.CounterValue, m.anew.Load())
	put(descUnpublished, prometheus.CounterValue, m.unpublished.Load())
	put(descHistories, prometheus.CounterValue, m.histories.Load())
	put(descSelectors, prometheus.GaugeValue, m.selectors.Load())
	put(descEverything, prometheus.GaugeValue, m.everything.Load())
	put(descIncomplete, prometheus.GaugeValue, m.incomplete.Load())
	put(descSelections, prometheus.CounterValue, m.selections.Load())
	put(descFed, prometheus.CounterValue, m.fed.Load())
	put(descBookReads, prometheus.CounterValue, m.bookReads.Load())
	put(descBookFailures, prometheus.CounterValue, m.bookFailures.Load())
	m.mu.Lock()
	delays := m.delays
	m.mu.Unlock()
	out <- histogram.Metric(descDelay, &delays)
	g := m.l.current.Load()
	if g == nil {
		return
	}
	if s, ok := g.server.Stats(); ok {
		put(descClients, prometheus.GaugeValue, uint64(s.Hub.Clients))
		put(descUnknown, prometheus.GaugeValue, uint64(s.Unknown))
		put(descSubscriptions, prometheus.GaugeValue, uint64(s.Hub.Subscriptions))
		put(descWaiting, prometheus.GaugeValue, uint64(s.Hub.Waiting))
		for d, v := range map[*prometheus.Desc]uint64{descPublished: s.Hub.Published, descUnwanted: s.Hub.Unwanted, descDelivered: s.Hub.Delivered, descConflated: s.Hub.Conflated,
			descDropped: s.Hub.Dropped, descGaps: s.Hub.Gaps, descEnded: s.Hub.Disconnected, descSent: s.Transport.BytesOut} {
			put(d, prometheus.CounterValue, v)
		}
		put(descPeersLost, prometheus.CounterValue, s.Publish.LostPeers)
		for at, v := range map[string]uint64{"here": s.Publish.Published, "peer": s.Publish.Relayed, "grid": s.Publish.Stored} {
			put(descUser, prometheus.CounterValue, v, at)
		}
		for reason, v := range map[string]uint64{"permission": s.Publish.NotPermitted, "limit": s.Publish.OverLimit, "invalid": s.Publish.Invalid, "grid": s.Publish.NotStored} {
			put(descUserRefused, prometheus.CounterValue, v, reason)
		}
		for reason, v := range map[string]uint64{"login": s.Refused, "late": s.Late, "crowd": s.Crowded, "full": s.Transport.Refused + s.Transport.NoTLS} {
			put(descRefused, prometheus.CounterValue, v, reason)
		}
	}
	known, there := uint64(0), uint64(0)
	for _, p := range g.peers.list() {
		if p.Address != "" {
			known++
		}
		if p.Connected {
			there++
		}
	}
	put(descPeers, prometheus.GaugeValue, known)
	put(descPeersThere, prometheus.GaugeValue, there)
	for _, p := range g.parts {
		read, failing := p.readTo.Load(), uint64(0)
		if p.failure() != nil {
			failing = 1
		}
		put(descBooks, prometheus.GaugeValue, uint64(p.books.count()+p.orderBooks.count()), p.id.String())
		put(descRead, prometheus.GaugeValue, read, p.id.String())
		put(descLag, prometheus.GaugeValue, max(p.commit.Load(), read)-read, p.id.String())
		put(descFailing, prometheus.GaugeValue, failing, p.id.String())
	}
}
