package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// newStandby is a shard whose partition is a standby.
func newStandby(t *testing.T, nodes int) *grid {
	g := newGrid(t, nodes, 1)
	name := PartitionName("g", 0)
	g.store = memory.NewStore(map[string]arbiter.Spec{name: {Grid: "g", Replicas: nodes, MinInSync: 1, PreferredPod: "g-s0-0", Standby: true, Source: "site a, a.example:7400"}})
	g.arb = g.store
	return g
}

// copyLog sends a grid's log to a standby, over one link, and returns its end.
func copyLog(t *testing.T, from, to *client.Client) client.LinkState {
	t.Helper()
	s, err := from.Site(t.Context(), 0)
	if err != nil || s.Standby {
		t.Fatalf("the source is %+v, %v", s, err)
	}
	l, err := to.OpenLink(t.Context(), client.LinkOptions{Term: s.Term, Source: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.State()
	f, err := from.Follow(t.Context(), client.FollowOptions{After: at.Stored})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for end := uint64(0); end == 0 || f.After().Seq < end; {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end = b.CommitSeq
		for _, e := range b.Entries {
			if err := l.Send(t.Context(), append(e.Bytes, make([]byte, (8-len(e.Bytes)%8)%8)...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for at.Committed.Seq < f.After().Seq {
		if at, err = l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// A standby takes the log of another grid and nothing else; its nodes write no sinks. When it is promoted it takes orders
// and writes them.
func TestStandby(t *testing.T) {
	a := newGrid(t, 2, 1).up()
	ca := a.client()
	submit(t, ca, "one", 100)
	b, dir := newStandby(t, 2), t.TempDir()
	b.base.Sink, b.base.SinkDir = SinkFile, dir
	b.up()
	cb := b.client()
	soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // a client waits for a promotion
	defer cancel()
	if _, err := cb.Submit(soon, fix("EARLY")); !errors.Is(err, client.ErrStandby) || !strings.Contains(err.Error(), "site a, a.example:7400") {
		t.Fatalf("an order at a standby: %v, want an error that names the other site", err)
	}
	at := copyLog(t, ca, cb)
	b.verify("")
	a.settled()
	want := a.logHashes(0)
	for i := range b.nodes {
		if got := b.logHashes(i); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("node %d holds %d entries, the source %d, and not the same", i, len(got), len(want))
		}
	}
	if f, err := followOnce(t, cb, client.FollowOptions{}); err != nil || f.Through.Lineage != 1 {
		t.Errorf("a follower at the standby gets %+v, %v", f.Through, err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) > 0 {
		t.Errorf("the sink of a standby has written %q", files)
	}
	var s nodestatus.Node
	_, body := b.nodes[0].get("/status")
	if err := json.Unmarshal([]byte(body), &s); err != nil || !s.Partitions[0].Standby || s.Partitions[0].Term != 0 {
		t.Errorf("/status: %s, %v", body, err)
	}
	if _, err := b.store.SetSpec(PartitionName("g", 0), func(s *arbiter.Spec) error {
		s.Promote = arbiter.Promote{Term: 2, Seq: at.Stored.Seq, Hash: fmt.Sprintf("%016x", at.Stored.Hash)}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.until(func() bool { s, err := cb.Site(t.Context(), 0); return err == nil && !s.Standby && s.Term == 2 }, "it is not promoted")
	submit(t, cb, "two", 50)
	b.sunk()
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) == 0 {
		t.Error("the sink of a promoted site has written nothing")
	}
	// The other site hears of the term, and stops.
	if _, err := ca.OpenLink(t.Context(), client.LinkOptions{Term: 2, Source: "b"}); !errors.Is(err, client.ErrNotStandby) {
		t.Fatalf("a link to a site that is active: %v", err)
	}
	if _, err := ca.Submit(t.Context(), fix("LATE")); !errors.Is(err, client.ErrStandby) {
		t.Errorf("an order at a site that was replaced: %v", err)
	}
	a.until(func() bool { s, err := ca.Site(t.Context(), 0); return err == nil && s.Standby && s.Term == 2 }, "it does not become a standby")
	if at := copyLog(t, cb, ca); at.Stored.Seq <= uint64(len(want)) {
		t.Errorf("the link back ends with entry %d", at.Stored.Seq)
	}
}

// What no link sends is refused, and costs the standby nothing.
func TestHostileLinks(t *testing.T) {
	b := newStandby(t, 1).up()
	entries := func(reqID, term uint64, n int) []byte {
		return wire.AppendLinkEntries(nil, 0, &wire.LinkEntries{ReqID: reqID, Term: term, Entries: make([]byte, n)})
	}
	open := wire.AppendLinkOpen(nil, 0, &wire.LinkOpen{ReqID: 1, Term: 3, Source: []byte("x")})
	for name, c := range map[string]struct {
		send []byte
		code wire.Code // of the Reject; 0: the connection ends
	}{
		"entries without a link":       {entries(1, 9, 64), wire.CodeSessionMoved},
		"entries of another link":      {append(append([]byte{}, open...), entries(2, 9, 64)...), wire.CodeSessionMoved},
		"entries that are none":        {append(append([]byte{}, open...), entries(1, 9, 64)...), 0},
		"no entries":                   {append(append([]byte{}, open...), entries(1, 9, 0)...), 0},
		"entries of half a word":       {append(append([]byte{}, open...), entries(1, 9, 60)...), 0},
		"more than a frame":            {append(append([]byte{}, open...), entries(1, 9, wire.MaxLinkEntries+8)...), 0},
		"a term without a next one":    {wire.AppendLinkOpen(nil, 0, &wire.LinkOpen{ReqID: 1, Term: wire.MaxTerm + 1, Source: []byte("x")}), 0},
		"a partition that is not here": {wire.AppendLinkOpen(nil, 7, &wire.LinkOpen{ReqID: 1, Source: []byte("x")}), wire.CodeUnsupported},
	} {
		r := b.rawClient(0)
		if _, err := r.Write(c.send); err != nil {
			t.Fatal(err)
		}
		for {
			f := r.next()
			var m wire.Reject
			switch {
			case f == nil || wire.FrameType(f) == wire.TypeGoaway || wire.FrameType(f) == wire.TypeNotPrimary:
				if c.code != 0 {
					t.Errorf("%s: the connection ended, want %s", name, c.code)
				}
			case wire.FrameType(f) == wire.TypeLinkState:
				continue
			case wire.DecodeReject(f, &m) != nil || m.Code != c.code:
				t.Errorf("%s: got %s %s, want %s", name, wire.FrameType(f), m.Code, c.code)
			}
			break
		}
		_ = r.Close()
	}
	s, err := b.client().Site(t.Context(), 0)
	if err != nil || s.Stored.Seq != 0 {
		t.Errorf("the standby holds %+v, %v", s, err)
	}
}

// Only the permission Link lets a client send what another site's clients have ordered, or stop a site.
func TestLinkPermission(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	text, err := os.ReadFile(d.rules)
	if err != nil {
		t.Fatal(err)
	}
	d.rule(strings.Replace(string(text), `{"rules": [`, `{"rules": [{"subjects": [{"kind": "User", "name": "link"}], "permissions": ["Link"]},`, 1))
	for user, want := range map[string]error{"gateway": client.ErrNotPermitted, "writer": client.ErrNotPermitted, "link": client.ErrNotStandby} {
		cfg := d.as(user)
		d.until(func() bool {
			c, err := client.Dial(t.Context(), cfg)
			if err != nil {
				return false // the rules are read soon
			}
			defer c.Close()
			_, err = c.OpenLink(t.Context(), client.LinkOptions{Term: 0, Source: "x"})
			return errors.Is(err, want)
		}, "%s: want %v", user, want)
	}
}
