package fixdoor

import (
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Sessions of one thread before two gateways: each order is in the log once, and the swarm grows between them.
func TestSwarm(t *testing.T) {
	const sessions = 60
	x := before(t, "FIX.4.4", 2, sessions)
	names, err := Names("FIX.4.4", map[wire.PartitionID]int{1: sessions}, x.c.SessionHome)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewSwarm(SwarmConfig{Gateways: x.gates, Names: names, Home: x.c.SessionHome, Password: "secret", Version: fixorder.FIX44, Run: 21, Most: 5000})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	total := 0
	for _, n := range []int{20, sessions} {
		if err := w.Grow(t.Context(), n); err != nil || w.Members() != n {
			t.Fatalf("%d sessions of %d: %v", w.Members(), n, err)
		}
		slow, err := w.AtRate(t.Context(), 500, 300*time.Millisecond)
		if err != nil || slow.Orders != 150 || len(slow.Took) != 150 || slow.Took[0] <= 0 {
			t.Fatalf("at a rate: %+v, %v", slow, err)
		}
		fast, err := w.AsFast(t.Context(), 16, 400, time.Minute)
		if err != nil || fast.Orders != 400 || w.Waiting() != 0 {
			t.Fatalf("as fast: %+v, %d wait, %v", fast, w.Waiting(), err)
		}
		total += slow.Orders + fast.Orders
	}
	f := w.Flows()[1]
	if len(f.Orders) != total {
		t.Errorf("%d orders in partition 1, want %d", len(f.Orders), total)
	}
	x.judge(t, f.ID, f.Orders)
}

// A Logon that is refused, and a number that is none of what comes next, end the swarm with the session's name.
func TestSwarmSaysWhich(t *testing.T) {
	x := before(t, "FIX.4.4", 1, 1)
	names, err := Names("FIX.4.4", map[wire.PartitionID]int{1: 1}, x.c.SessionHome)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewSwarm(SwarmConfig{Gateways: x.gates, Names: names, Home: x.c.SessionHome, Password: "wrong", Version: fixorder.FIX44, Run: 22, Most: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Grow(t.Context(), 1); err == nil || !strings.Contains(err.Error(), names[0].String()) {
		t.Errorf("a wrong password: %v", err)
	}
	if err := w.take(0, w.out.appendMessage(nil, "0", 7, nil, "")); err == nil || !strings.Contains(err.Error(), "MsgSeqNum (34) is 7, allowed: 1") {
		t.Errorf("a number that does not come next: %v", err)
	}
	if err := w.take(0, w.out.appendMessage(nil, "8", 1, nil, "11=x\x01150=0\x0137=p1/1@1\x01")); err == nil || !strings.Contains(err.Error(), "which it did not wait for") {
		t.Errorf("a report of no order: %v", err)
	}
}
