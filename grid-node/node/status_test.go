package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The page distinguishes processes under the same pod name, with their views.
func TestStatusPage(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit(t, g.client(), "order", 3)
	page := func(i int) (nodestatus.Node, nodestatus.Partition) {
		t.Helper()
		var s nodestatus.Node
		code, body := g.nodes[i].get(nodestatus.Path)
		if err := json.Unmarshal([]byte(body), &s); code != 200 || err != nil || s.Find("g-p0") == nil {
			t.Fatalf("status %d, %v: %s", code, err, body)
		}
		return s, *s.Find("g-p0")
	}
	rec, err := g.store.Get(t.Context(), "g-p0")
	if err != nil {
		t.Fatal(err)
	}
	s, p := page(0)
	if s.Grid != "g" || s.Pod != rec.Primary.PodName || s.BootID != rec.Primary.BootID || s.Stopping {
		t.Errorf("node %+v, record %+v", s, rec.Primary)
	}
	if p.Partition != "p0" || p.Member != rec.Primary.ID || p.BootID != rec.Primary.BootID || p.Role != "primary" || p.Epoch != rec.Epoch ||
		p.Lineage != 1 || p.ChangeID != rec.ChangeID || p.Primary != rec.Primary.ID || len(p.InSync) != 2 || p.LastSeq < 3 || p.CommitSeq > p.LastSeq {
		t.Errorf("partition %+v, record %+v", p, rec)
	}
	before, _ := page(1)
	g.kill(1)
	g.start(1)
	g.ready()
	after, p := page(1)
	if after.Pod != before.Pod || after.BootID == before.BootID || p.Member != after.Pod+"/"+after.BootID || p.Role != "backup" {
		t.Errorf("after a restart %+v, before %+v", after, before)
	}
}

// A pod is ready where it is in sync, and where a partition that moves to it has its
// copies without it: not where one of those copies is the pod's own former process, whose
// loss is not detected yet.
func TestWhatAPodLacks(t *testing.T) {
	member := func(id string) replica.Member {
		m, err := replica.NewMember(id, "127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	self, former, a, b := member("g-s0-0/00000000000000b2"), member("g-s0-0/00000000000000b1"), member("g-s0-1/00000000000000a1"), member("g-s1-0/00000000000000c1")
	p := &partition{process: &process{identity: identity{cfg: Config{Pod: "g-s0-0"}}}, inc: &incarnation{self: self}, record: record{copies: 2}}
	for name, c := range map[string]struct {
		role   replica.Role
		inSync []replica.Member
		want   string
	}{
		"in sync":                  {replica.RoleBackup, []replica.Member{a, self}, ""},
		"fenced":                   {replica.RoleFenced, []replica.Member{a, self}, "this member is fenced"},
		"a copy is missing":        {replica.RoleLearner, []replica.Member{a}, "catch up with " + a.ID},
		"it moves here":            {replica.RoleLearner, []replica.Member{a, b}, ""},
		"its former process":       {replica.RoleLearner, []replica.Member{a, former}, "catch up with " + a.ID},
		"that one, and two others": {replica.RoleLearner, []replica.Member{a, b, former}, "catch up with " + a.ID},
	} {
		got := p.lacks(&replica.Status{Role: c.role, Config: &replica.Config{Epoch: 3, Primary: c.inSync[0], InSync: c.inSync}})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
