package service_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// value returns a field of a message as it is shown.
func value(m, tag string) string {
	_, after, _ := strings.Cut(m, "|"+tag+"=")
	v, _, _ := strings.Cut(after, "|")
	return v
}

// killPrimary kills the process that is primary of the partition of an OrderID.
func killPrimary(t *testing.T, g *testgrid.Grid, orderID string) {
	t.Helper()
	partition, _, _ := strings.Cut(orderID, "/")
	for _, p := range downstream.Dial(t, g).Table() {
		if p.ID.String() != partition {
			continue
		}
		pid, err := g.PIDOf(p.Primary.Address)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no partition of order %q", orderID)
}

// TestMassCancel: a session cancels its orders at one place of the log, of a symbol, of a side
// or all; those of others stay. What it is told is the same after its primary and its gateway
// are gone.
func TestMassCancel(t *testing.T) {
	for _, version := range []string{"FIX.4.4", "FIXT.1.1"} {
		t.Run(version, func(t *testing.T) { massCancels(t, version+":") })
	}
}

func massCancels(t *testing.T, v string) {
	g := testgrid.Matching(t)
	d, e := serve(t, g, nil, v+"A@IBM", v+"B@IBM"), serve(t, g, nil, v+"A@IBM")
	a, b := d.dial(v+"A"), d.dial(v+"B")
	a.on()
	b.on()
	enter := func(p *peer, id, side, price string) {
		p.Helper()
		p.send("D", "11="+id+"|55=IBM|54="+side+"|60=NOW|38=10|40=2|44="+price+"|")
		p.wants("35=8", "150=0", "11="+id)
	}
	enter(b, "b1", "1", "125.00")
	enter(a, "s1", "2", "126.00")
	enter(a, "s2", "2", "126.10")
	enter(a, "b1", "1", "125.10")
	var first []string
	answer := func(want ...string) {
		t.Helper()
		got := a.wants(want...)
		if is := strings.Contains(got, "|35=r|"); is && (strings.Contains(got, "|1369=") != (v == "FIXT.1.1:")) { // MassActionReportID
			t.Errorf("%s has the report %q", v, got)
		}
		first = append(first, got)
	}

	a.send("q", "11=m1|530=1|55=IBM|54=2|60=NOW|")
	answer("35=r", "11=m1", "530=1", "531=1", "533=2", "55=IBM", "54=2")
	answer("35=8", "11=s1", "150=4", "39=4", "151=0", "58=mass cancel")
	answer("35=8", "11=s2", "150=4", "39=4", "151=0")
	a.send("q", "11=m2|530=1|55=INTC|60=NOW|")
	answer("35=r", "11=m2", "531=0", "532=1", "37=NONE")
	a.send("q", "11=m3|530=3|167=CS|60=NOW|")
	answer("35=r", "11=m3", "531=0", "532=0")
	a.send("q", "11=m4|530=7|54=5|60=NOW|")
	answer("35=r", "11=m4", "531=0", "532=99")
	a.send("q", "11=m5|530=7|60=NOW|")
	answer("35=r", "11=m5", "530=7", "531=7", "533=1")
	answer("35=8", "11=b1", "150=4", "39=4")
	a.send("q", "11=m6|530=7|60=NOW|") // of nothing; how many is said unless another one goes on
	answer("35=r", "11=m6", "531=7")
	b.send("H", "11=b1|55=IBM|54=1|")
	b.wants("150=I", "39=0", "151=10")

	enter(a, "last", "2", "127.00")
	seq := a.seq
	_ = a.c.Close()
	killPrimary(t, g, value(first[0], "37"))
	a = e.dial(v + "A")
	a.seq = seq
	if got := a.on(); !strings.Contains(got, "|35=A|") {
		t.Fatalf("the Logon at the other gateway: %q", got)
	}
	a.send("2", "7="+value(first[0], "34")+"|16=0|")
	for _, want := range first {
		if got := a.receive(); lasting(got) != lasting(want) || !strings.Contains(got, "|43=Y|") {
			t.Errorf("resent as\n%q, was\n%q", got, want)
		}
	}
}
