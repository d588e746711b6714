package metrics

// PeerLink is the connection that carries the log between this node and another
// one, as the kernel saw it at the scrape. Times are in nanoseconds.
type PeerLink struct {
	Pod                       string // of the other node
	RTT, RTTVar               int64
	ReceivedAgo               int64 // age of the last data received
	Retransmits               uint64
	Unacked                   uint64 // segments
	BytesAcked, BytesReceived uint64
}

// MaxPeerLinks bounds the values of the label peer: a shard has a few nodes.
const MaxPeerLinks = 16

var (
	peerRTT         = desc("peer_rtt_seconds", "Smoothed round trip on the connection to another node, as the kernel measures it.", "peer")
	peerRTTVar      = desc("peer_rtt_variation_seconds", "Mean deviation of that round trip.", "peer")
	peerSilence     = desc("peer_silence_seconds", "Age of the last data received on the connection to another node.", "peer")
	peerUnacked     = desc("peer_unacknowledged_segments", "Segments sent to another node that its kernel has not acknowledged.", "peer")
	peerRetransmits = desc("peer_retransmits_total", "Segments sent to another node again; from 0 with each new connection.", "peer")
	peerAcked       = desc("peer_acknowledged_bytes_total", "Bytes that another node's kernel has acknowledged; from 0 with each new connection.", "peer")
	peerReceived    = desc("peer_received_bytes_total", "Bytes received from another node on that connection; from 0 with each new connection.", "peer")

	arbiterAge = desc("arbiter_contact_age_seconds", "Age of the last message from the arbiter; absent before the first. It grows while there is nothing to request: GET /arbiter sends a request.")
)

// peerLinks are absent where the kernel does not report them.
func (e emitter) peerLinks(s *Snapshot) {
	seen := map[string]bool{}
	for i := range s.PeerLinks {
		p := &s.PeerLinks[i]
		if seen[p.Pod] || len(seen) >= MaxPeerLinks { // a pod's former process, or nodes that send false names
			continue
		}
		seen[p.Pod] = true
		e.gauge(peerRTT, float64(p.RTT)*1e-9, p.Pod)
		e.gauge(peerRTTVar, float64(p.RTTVar)*1e-9, p.Pod)
		e.gauge(peerSilence, float64(p.ReceivedAgo)*1e-9, p.Pod)
		e.gauge(peerUnacked, float64(p.Unacked), p.Pod)
		e.counter(peerRetransmits, p.Retransmits, p.Pod)
		e.counter(peerAcked, p.BytesAcked, p.Pod)
		e.counter(peerReceived, p.BytesReceived, p.Pod)
	}
	if s.ArbiterAgo != 0 {
		e.gauge(arbiterAge, float64(s.ArbiterAgo)*1e-9)
	}
}
