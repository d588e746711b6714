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
	names, err := Names("FIX.4.4", 0, map[wire.PartitionID]int{1: sessions}, x.c.SessionHome)
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
		slow, err := w.AtRate(t.Context(), 500, time.Now(), 300*time.Millisecond)
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
	names, err := Names("FIX.4.4", 0, map[wire.PartitionID]int{1: 1}, x.c.SessionHome)
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

// Threads of a herd have tables of descriptors of their own, and what they do adds up.
func TestHerd(t *testing.T) {
	const sessions, threads = 41, 3
	x := before(t, "FIX.4.4", 2, sessions)
	names, err := Names("FIX.4.4", 0, map[wire.PartitionID]int{1: sessions}, x.c.SessionHome)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHerd(SwarmConfig{Gateways: x.gates, Names: names, Home: x.c.SessionHome, Password: "secret", Version: fixorder.FIX44, Run: 23, Most: 1000}, threads)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, n := range []int{20, sessions} {
		if err := h.Grow(t.Context(), n); err != nil || h.Members() != n {
			t.Fatalf("%d sessions of %d: %v", h.Members(), n, err)
		}
	}
	low := map[int32]bool{}
	for _, thread := range h.threads {
		low[thread.swarm.members[0].fd] = true
		if n := len(thread.swarm.members); n < sessions/threads {
			t.Errorf("a thread has %d sessions of %d", n, sessions)
		}
	}
	if len(low) == threads {
		t.Errorf("no two of %d threads have a descriptor of the same number: %v; is it one table?", threads, low)
	}
	slow, err := h.AtRate(t.Context(), 300, 500*time.Millisecond)
	if err != nil || slow.Orders != 150 || len(slow.Took) != 150 {
		t.Fatalf("at a rate: %+v, %v", slow, err)
	}
	fast, err := h.AsFast(t.Context(), 16, 400, time.Minute)
	if err != nil || fast.Orders != 400 {
		t.Fatalf("as fast: %+v, %v", fast, err)
	}
	total := 0
	for _, f := range h.Flows() {
		if total += len(f.Orders); len(f.Orders) > 0 {
			x.judge(t, f.ID, f.Orders)
		}
	}
	if total != 550 {
		t.Errorf("%d orders, want 550", total)
	}
}

func TestThreads(t *testing.T) {
	for _, c := range []struct{ sessions, each, want int }{{1, 10, 1}, {10, 10, 1}, {11, 10, 2}, {120_000, 19_700, 7}} {
		if got := Threads(c.sessions, c.each); got != c.want {
			t.Errorf("%d sessions, %d of a thread: %d threads, want %d", c.sessions, c.each, got, c.want)
		}
	}
}
