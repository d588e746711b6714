// Package nodestatus is the HTTP status pages of a grid node and their client. GET
// /status: the processes it runs and their view of each partition; the operator requests
// it when a partition is in trouble, users with curl. GET /peers, /clock, /takeovers,
// /arbiter: evidence that a fault was effective, and its consequences; used by drills.
package nodestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Path of the page on a node's HTTP port.
const Path = "/status"

// Bounds of an answer, in bytes. A node has at most MaxPartitions partitions, of at most 4 members each.
const (
	MaxPartitions = 1024
	maxBody       = 512 << 10 // of a page without a row per partition
	maxRows       = MaxPartitions * 2 << 10
	maxStatus     = MaxPartitions * 12 << 10 // 64 regions in each
	maxTakeovers  = MaxChanges * 3 << 9
)

// Node is one process.
type Node struct {
	Grid     string `json:"grid"`
	Pod      string `json:"pod"`
	BootID   string `json:"bootID"`             // of the process: 16 hex digits
	Stopping bool   `json:"stopping,omitempty"` // it was asked to stop
	TLS      *TLS   `json:"tls,omitempty"`      // of the data port; absent without
	// Faulty is set in a build that can be configured to lose orders: the negative control
	// of tests that detect lost ones.
	Faulty    *Faulty    `json:"faulty,omitempty"`
	Functions *Functions `json:"functions,omitempty"` // absent without --function-pre
	// Posts are functions that the logs of the partitions here have in force.
	Posts []PostFunction `json:"posts,omitempty"`
	// Computes are functions that clients call where the node is primary.
	Computes   []ComputeFunction `json:"computes,omitempty"`
	Partitions []Partition       `json:"partitions"`
}

// ComputeFunction is a function of kind Compute that the process has loaded. Its counts are of the process.
type ComputeFunction struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"`
	Fuel    int64  `json:"fuel"`    // of a call
	Pages   uint32 `json:"pages"`   // of 64 KiB
	Decided uint64 `json:"decided"` // calls with a result
	Errors  uint64 `json:"errors"`  // that the function returned, or since the call did not fit what it takes
	Failed  uint64 `json:"failed"`
}

// PostFunction is a function of kind Post. Its counts are of the partitions of the process
// together, since it has their state.
type PostFunction struct {
	Name       string `json:"name"`
	SHA256     string `json:"sha256"`
	Partitions int    `json:"partitions"` // that have it in force
	Records    uint64 `json:"records"`
	None       uint64 `json:"none"` // calls without a record
	Failed     uint64 `json:"failed"`
}

// Functions are those that decide on orders where the node is primary.
type Functions struct {
	Chain string     `json:"chain"`           // SHA-256 of all that decides: modules, order, configurations, grants
	Stamp uint32     `json:"stamp,omitempty"` // the tag that accepted orders have the beginning of Chain in
	Pre   []Function `json:"pre"`
}

// Function is a module that the process has loaded. Its counts are of the process.
type Function struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"`
	OnError string `json:"onError"`
	Fuel    int64  `json:"fuel"`  // of a call
	Pages   uint32 `json:"pages"` // of 64 KiB
	// Tags that it may set.
	Tags     []uint32 `json:"tags,omitempty"`
	Accepted uint64   `json:"accepted"`
	Refused  uint64   `json:"refused"`
	Changed  uint64   `json:"changed"`
	Failed   uint64   `json:"failed"`
}

// Faulty is the misbehaviour of a node built with the tag faulty. No release is built so.
type Faulty struct {
	DropEvery uint64 `json:"dropEvery"` // every Nth order of a partition is acknowledged and dropped; 0: none
	Dropped   uint64 `json:"dropped"`   // orders dropped since the process began
}

// TLS is what new connections find at this moment: the node's certificate and trusted
// authorities.
type TLS struct {
	Serial   string    `json:"serial"` // of its certificate, in hexadecimal digits
	NotAfter time.Time `json:"notAfter"`
	// Authorities that may have signed another node's certificate, by SHA-256 in hexadecimal digits.
	Authorities []string `json:"authorities"`
	// Transition is "accept" or "dial" while the data port takes plain connections, too.
	Transition   string        `json:"transition,omitempty"`
	PlainClients *PlainClients `json:"plainClients,omitempty"` // in a transition only
	Error        string        `json:"error,omitempty"`        // why its present files cannot be used; those read before are in use
}

// Stages between plain TCP and TLS.
const (
	TransitionAccept = "accept" // takes TLS beside plain connections, and dials other nodes without
	TransitionDial   = "dial"   // takes both, and dials TLS
)

// PlainClients are the connections of clients without TLS.
type PlainClients struct {
	Connections int           `json:"connections"`
	Some        []PlainClient `json:"some,omitempty"` // at most 8 that differ
}

// PlainClient is the address and the declared name of a client.
type PlainClient struct {
	Host string `json:"host"`
	Name string `json:"name"`
}

// Partition is the node's part in one partition.
type Partition struct {
	Record    string `json:"record"`    // name of the GridPartition
	Partition string `json:"partition"` // as on the wire and in receipts: "p1"
	// Member is "<pod>/<bootID>" of the present incarnation. It differs from the process's
	// boot id once the node has discarded a replica and joined again: the data of the
	// earlier incarnation is lost.
	Member    string   `json:"member"`
	BootID    string   `json:"bootID"` // of Member
	Role      string   `json:"role"`   // idle, claiming, primary, backup, learner, fenced, stopped
	Suspended bool     `json:"suspended,omitempty"`
	Draining  bool     `json:"draining,omitempty"`
	Epoch     uint64   `json:"epoch"`              // of the configuration it follows; differs from the record's when that was rolled back
	Lineage   uint64   `json:"lineage"`            //
	ChangeID  string   `json:"changeID"`           // of that configuration
	Primary   string   `json:"primary"`            // member id
	InSync    []string `json:"inSync"`             // member ids
	Standby   bool     `json:"standby,omitempty"`  // its entries come from another site
	Term      uint64   `json:"term,omitempty"`     // of its site
	FencedBy  uint64   `json:"fencedBy,omitempty"` // term of a site that replaces this one, which is about to be a standby
	LastSeq   uint64   `json:"lastSeq"`
	FreedSeq  uint64   `json:"freedSeq,omitempty"` // entries up to here are freed
	Bytes     int64    `json:"bytes,omitempty"`    // memory of the entries held, without their index
	CommitSeq uint64   `json:"commitSeq"`
	CursorSeq uint64   `json:"cursorSeq"` // the replicated write-behind position
	DataSeq   uint64   `json:"dataSeq"`   // last entry that is not such a position
	SinkSeq   uint64   `json:"sinkSeq"`   // position of this node's own sink, or CursorSeq

	// Restore is how far an archive is loaded that the partition begins with; absent once
	// the partition is claimed, and without an archive. LastSeq is the last entry loaded.
	Restore *Restore `json:"restore,omitempty"`

	View *View `json:"view,omitempty"` // absent without --views

	Regions []Region `json:"regions,omitempty"` // that the log has; absent without

	DropCopies []DropCopy `json:"dropCopies,omitempty"` // of its FIX sessions; absent without
}

// DropCopy is a FIX session that gets copies of the reports of others, as far as the log is stored
// here. One that is not listed gets none, whatever its gateway is configured with.
type DropCopy struct {
	Session  string `json:"session"` // its id, in 32 hex digits, which its gateway logs with its name
	Slot     uint32 `json:"slot"`
	Sources  int    `json:"sources"`            // sessions whose reports are copied
	SinceSeq uint64 `json:"sinceSeq,omitempty"` // the entry that named them; absent where it was freed before this copy began
	Day      string `json:"day"`                // of its last Logon, in UTC: 2026-03-02
	Open     bool   `json:"open,omitempty"`     // this is the primary, and a gateway has the session
}

// View is the view of a partition's orders on this node, which questions are asked of.
type View struct {
	AppliedSeq uint64 `json:"appliedSeq"`           // questions see entries up to here
	DroppedSeq uint64 `json:"droppedSeq,omitempty"` // and none up to here: those are freed, or about to be
	Lag        uint64 `json:"lag"`                  // committed entries that it lacks
	Bytes      int64  `json:"bytes"`                // memory in use, without sorted runs
	Error      string `json:"error,omitempty"`      // why there is none, or why it ends before the log does
}

// Region is what a copy of a partition has of a region.
type Region struct {
	Name     string `json:"name"`
	Entries  uint64 `json:"entries"`
	Bytes    uint64 `json:"bytes"`              // that they take
	MaxBytes uint64 `json:"maxBytes,omitempty"` // that they may take here; absent without a bound of its own
	// Full: this is the primary, and the change that it refused last for want of memory is refused still.
	Full bool `json:"full,omitempty"`
}

// Restore is the loading of an archive.
type Restore struct {
	ThroughSeq uint64 `json:"throughSeq"`      // the recovery point: the last entry to load
	Error      string `json:"error,omitempty"` // why the last attempt failed
}

// Find returns the node's part in the partition with that record, nil if there is none.
func (n *Node) Find(record string) *Partition {
	for i := range n.Partitions {
		if n.Partitions[i].Record == record {
			return &n.Partitions[i]
		}
	}
	return nil
}

// NewClient returns an HTTP client for Get: no proxy, no redirect, no kept connection, so
// that a request leaves nothing behind on a node. dial may be nil.
func NewClient(timeout time.Duration, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	if dial == nil {
		dial = (&net.Dialer{Timeout: timeout}).DialContext
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Get requests the page from the node at address, "host:port" of its HTTP port. Only the
// form of the answer is checked: compare Grid and Pod with the intended target.
func Get(ctx context.Context, c *http.Client, address string) (*Node, error) {
	n := &Node{}
	if err := get(ctx, c, address, Path, maxStatus, n); err != nil {
		return nil, err
	}
	if n.Pod == "" || n.BootID == "" {
		return nil, fmt.Errorf("GET http://%s%s: the answer names no pod and boot id; is this a grid node of this version?", address, Path)
	}
	return n, nil
}

// get reads a page of the node at address, of at most limit bytes, into v.
func get(ctx context.Context, c *http.Client, address, path string, limit int, v any) error {
	url := "http://" + address + path
	body, err := fetch(ctx, c, url, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("GET %s: the answer is not that page of a grid node: %w", url, err)
	}
	return nil
}

// fetch reads one page of a node, of at most limit bytes.
func fetch(ctx context.Context, c *http.Client, url string, limit int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("GET %s: %w", url, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: status %d: %.100q", url, resp.StatusCode, body)
	case len(body) > limit:
		return nil, fmt.Errorf("GET %s: the answer is longer than %d bytes; is this a grid node?", url, limit)
	}
	return body, nil
}
