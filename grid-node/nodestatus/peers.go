package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// PeersPath of the page on a node's HTTP port.
const PeersPath = "/peers"

// maxConnections on the page. A node has three or four per other node of its
// shard; a shard has a few nodes.
const maxConnections = 256

// Kinds of Connection.
const (
	KindPeer     = "peer"     // everything on the path of orders
	KindLiveness = "liveness" // heartbeats, on a thread of their own
	KindBulk     = "bulk"     // catch-up of a learner
)

// Protections of a Connection.
const (
	ProtectionNone = "none" // plain: neither authenticated nor encrypted
	ProtectionKey  = "key"  // both ends have proved the grid's peer key; encrypted
	ProtectionTLS  = "tls"  // both ends have shown a certificate of the grid; encrypted
)

// Peers are the connections between a node and the other nodes of its shard, as the kernel
// saw them at the request.
type Peers struct {
	Pod         string       `json:"pod"`
	BootID      string       `json:"bootID"`
	Connections []Connection `json:"connections"`
}

// Connection is one of them. Ages and times are in nanoseconds.
type Connection struct {
	Kind    string `json:"kind"`
	Member  string `json:"member"`            // "<pod>/<bootID>" of the other process
	Pod     string `json:"pod"`               // of Member
	Address string `json:"address,omitempty"` // data port the other process is reached at: "ip:port"
	Version int    `json:"version,omitempty"` // of the protocol that both ends speak
	Dialled bool   `json:"dialled,omitempty"` // by this node
	// Protection is none, key or tls; "" from an older node, which does not report it.
	Protection string `json:"protection,omitempty"`
	// Written is false for a connection that is only read: both nodes may dial, and then
	// one of the two connections is about to be closed; an accepted liveness or bulk
	// connection is only answered on, or read.
	Written   bool   `json:"written,omitempty"`
	Local     string `json:"local"`               // "ip:port" of this end
	Remote    string `json:"remote"`              // "ip:port" of the other end
	Interface string `json:"interface,omitempty"` // network interface that has the address of Local
	Buffered  int64  `json:"bufferedBytes"`       // in the node, not yet written to the kernel
	// HeardAgoNs is the age of the last heartbeat or answer on a liveness connection. 0:
	// none yet, or another kind of connection.
	HeardAgoNs int64  `json:"heardAgoNs,omitempty"`
	TCP        *TCP   `json:"tcp,omitempty"` // absent where the kernel does not report it
	Error      string `json:"error,omitempty"`
}

// TCP is the part of the kernel's TCP_INFO about the path between the two ends. Counters
// run since the connection was opened.
type TCP struct {
	State          string `json:"state"` // as in RFC 9293: "ESTABLISHED", …
	RTTNs          int64  `json:"rttNs"` // smoothed round trip
	RTTVarNs       int64  `json:"rttvarNs"`
	MinRTTNs       int64  `json:"minRTTNs,omitempty"`
	RTONs          int64  `json:"rtoNs"`       // retransmission timeout
	Retransmits    uint64 `json:"retransmits"` // segments sent again
	DSACKDups      uint64 `json:"dsackDups"`   // times the other end reported a duplicate segment
	OutOfOrder     uint64 `json:"outOfOrder"`  // segments received before one that was sent earlier
	SegsOut        uint64 `json:"segmentsOut"` // segments sent, including retransmissions
	SegsIn         uint64 `json:"segmentsIn"`
	Unacked        uint64 `json:"unacked"` // segments on the way
	NotSent        uint64 `json:"notSentBytes"`
	BytesAcked     uint64 `json:"bytesAcked"`
	BytesReceived  uint64 `json:"bytesReceived"`
	SentAgoNs      int64  `json:"sentAgoNs"`     // age of the last data sent, to the millisecond
	ReceivedAgoNs  int64  `json:"receivedAgoNs"` // age of the last data received, likewise
	LastAckedAgoNs int64  `json:"ackedAgoNs"`    // age of the last acknowledgement of the other end's kernel, likewise
}

// To returns the connections of a kind to a pod; kind "" is any.
func (p *Peers) To(pod, kind string) (out []Connection) {
	for _, c := range p.Connections {
		if c.Pod == pod && (kind == "" || c.Kind == kind) {
			out = append(out, c)
		}
	}
	return out
}

// GetPeers requests the page from the node at address, "host:port" of its HTTP port.
func GetPeers(ctx context.Context, c *http.Client, address string) (*Peers, error) {
	p := &Peers{}
	if err := get(ctx, c, address, PeersPath, maxBody, p); err != nil {
		return nil, err
	}
	if p.Pod == "" || p.BootID == "" || len(p.Connections) > maxConnections {
		return nil, fmt.Errorf("GET http://%s%s: the answer names pod %.80q, boot id %.20q and %d connections; is this a grid node of this version?",
			address, PeersPath, p.Pod, p.BootID, len(p.Connections))
	}
	return p, nil
}
