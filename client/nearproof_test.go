package client

import (
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// nearNode is a grid of one partition as a near cache sees it.
type nearNode struct {
	t       *testing.T
	g       *fakeGrid
	mu      sync.Mutex
	lineage uint32
	commit  uint64
	version uint64 // of the value that each key has
	refuses bool   // to say what is committed
	asked   int    // how often it was
	stream  *fakeConn
	follow  wire.Follow
}

func newNearNode(t *testing.T) *nearNode {
	n := &nearNode{t: t, g: newFakeGrid(t, 1), lineage: 1, commit: 100, version: 9}
	n.g.primary.setHook(n.answer)
	return n
}

func (n *nearNode) answer(c *fakeConn, frame []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.g.mu.Lock()
	defer n.g.mu.Unlock()
	var out []byte
	switch wire.FrameType(frame) {
	case wire.TypeTableRequest:
		var m wire.Request
		_ = wire.DecodeRequest(frame, wire.TypeTableRequest, &m)
		table := n.g.table(m.ReqID)
		table.Parts[0].Lineage = n.lineage
		out = wire.AppendTable(nil, table)
	case wire.TypeFollow:
		if err := wire.DecodeFollow(frame, &n.follow); err != nil {
			n.t.Error(err)
		}
		n.stream = c
		out = n.batch()
	case wire.TypeRegionGet:
		var m wire.RegionGet
		if err := wire.DecodeRegionGet(frame, &m); err != nil {
			n.t.Error(err)
		}
		got := wire.RegionGot{ReqID: m.ReqID, Epoch: n.g.epoch, CommitSeq: n.commit}
		switch {
		case string(m.Key) != "\x00":
			got.Version = n.version
		case n.refuses:
			n.asked++
			out = wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: m.ReqID, Code: wire.CodeNotPermitted, ForType: wire.TypeRegionGet})
		}
		if out == nil {
			out = wire.AppendRegionGot(nil, testPartition, &got)
		}
	default:
		return false
	}
	_, _ = c.Write(out) // the client may be gone
	return true
}

// batch is a part of the log without entries, behind what is committed.
func (n *nearNode) batch() []byte {
	return wire.AppendFollowEntries(nil, testPartition, &wire.FollowEntries{ReqID: n.follow.ReqID, From: n.commit + 1, Through: n.commit, CommitSeq: n.commit,
		ThroughHash: uint64(n.lineage), Lineage: n.lineage, Window: 1 << 20})
}

// becomes is a change of the configuration, without a word to followers.
func (n *nearNode) becomes(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.g.mu.Lock()
	defer n.g.mu.Unlock()
	f()
}

// near makes a cache, which has a value.
func (n *nearNode) near(age time.Duration) *NearCache {
	n.t.Helper()
	c, err := n.g.dial(n.t).Region("positions").NearCache(NearCacheOptions{MaxAge: age})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	n.hits(c)
	return c
}

// get reads the key.
func (n *nearNode) get(c *NearCache) uint64 {
	n.t.Helper()
	e, err := c.Get(n.t.Context(), nearKey)
	if err != nil {
		n.t.Fatal(err)
	}
	return e.Version
}

// hits reads until there have been some answers from memory.
func (n *nearNode) hits(c *NearCache) {
	n.t.Helper()
	was := c.Stats().Hits
	waitFor(n.t, func() bool {
		n.get(c)
		return c.Stats().Hits >= was+3
	})
}

// What a primary of another lineage has committed shows nothing about what is followed.
func TestNearProofOfAnotherLineage(t *testing.T) {
	const age = 100 * time.Millisecond
	n := newNearNode(t)
	c := n.near(age)
	n.becomes(func() { n.g.epoch++ }) // a change of the members alone
	time.Sleep(2 * age)
	n.hits(c)
	if s := c.Stats(); s.Restarts != 0 {
		t.Errorf("%+v", s)
	}
	// The loss of data is accepted: entries behind 50 are gone, and the key is changed by entry 60.
	n.becomes(func() { n.g.epoch, n.lineage, n.commit, n.version = n.g.epoch+1, 2, 60, 60 })
	lost := time.Now()
	for begin := lost; begin.Before(lost.Add(4 * age)); begin = time.Now() {
		if v := n.get(c); v != 60 && begin.After(lost.Add(age)) {
			t.Fatalf("the value of version %d is given, which was changed %v ago", v, begin.Sub(lost))
		}
		time.Sleep(time.Millisecond)
	}
	if s := c.Stats(); s.Restarts != 0 || s.Stale == 0 {
		t.Errorf("before the follower has heard of it: %+v", s)
	}
	n.becomes(func() {
		_, _ = n.stream.Write(wire.AppendFollowEntries(nil, testPartition, &wire.FollowEntries{ReqID: n.follow.ReqID, From: 101, Through: 100, CommitSeq: 100, ThroughHash: 1,
			Lineage: 2, Window: 1 << 20}))
	})
	n.hits(c)
	if s := c.Stats(); s.Restarts != 1 || n.get(c) != 60 {
		t.Errorf("when it has: %+v", s)
	}
}

// A primary that does not say what is committed is asked again after a pause, not by each read.
func TestNearAsksAgain(t *testing.T) {
	const age, asks = 400 * time.Millisecond, 6
	n := newNearNode(t)
	c := n.near(age)
	began := time.Now()
	n.becomes(func() { n.refuses = true })
	asked := func() (k int) {
		n.becomes(func() { k = n.asked })
		return k
	}
	for asked() < asks {
		n.get(c)
	}
	if took := time.Since(began); took < (asks-1)*age/8 {
		t.Errorf("it was asked %d times within %v, want %v between them", asks, took, age/8)
	}
	n.becomes(func() { n.refuses = false })
	n.hits(c)
}
