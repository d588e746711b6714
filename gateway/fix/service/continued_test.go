package service_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// on logs on with the peer's next number and no reset.
func (p *peer) on() string {
	p.Helper()
	p.send("A", "98=0|108=30|553=u|554=right|")
	return p.receive()
}

// lasting is a message without what differs when it is resent.
func lasting(m string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(m, "|"), func(f string) bool {
		tag, _, _ := strings.Cut(f, "=")
		return slices.Contains([]string{"9", "10", "43", "52", "122"}, tag)
	}), "|")
}

// A session goes on at another service: with its numbers, and with each report and refusal as it was sent first.
func continued(t *testing.T, g *testgrid.Grid, name string) {
	d, e := serve(t, g, nil, name), serve(t, g, nil, name)
	a := d.dial(name)
	if got := a.on(); !strings.Contains(got, "|35=A|34=1|") {
		t.Fatalf("the first Logon: %q", got)
	}
	for _, m := range [][2]string{
		{"D", "11=c-1|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|"},
		{"D", "11=c-2|55=INTC|54=z|60=NOW|38=500|40=2|44=21.35|59=0|"}, // refused by the session layer
		{"D", "11=c-1|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|"},
		{"D", "97=Y|11=c-1|1=ACCT|55=INTC|54=1|60=NOW|38=700|40=2|44=21.35|59=0|"}, // it may have been sent before
		{"F", "11=c-3|41=c-1|55=INTC|54=1|60=NOW|38=500|"},
		{"H", "11=c-1|55=INTC|54=1|790=why|"},
		{"H", "11=c-9|55=INTC|54=1|"}, // there is none
		{"q", "11=c-8|530=7|60=NOW|"}, // the grid stores orders, it has none to cancel
		{"F", "11=c-3|41=c-1|55=INTC|54=1|60=NOW|38=500|"},
	} {
		a.send(m[0], m[1])
	}
	var first []string
	for _, want := range []string{"|35=8|34=2|", "|35=3|34=3|", "|35=8|34=4|", "|35=8|34=5|", "|35=8|34=6|", "|35=8|34=7|", "|35=8|34=8|", "|35=r|34=9|", "|35=9|34=10|"} {
		first = append(first, a.receive())
		if got := first[len(first)-1]; !strings.Contains(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	for i, want := range []string{"|39=0|", "|371=54|372=D|373=5|", "|39=8|", "|150=I|", "|39=6|", "|150=I|151=500|790=why|", "|103=5|150=I|", "|530=7|531=0|532=0|", "|434=1|"} {
		if !strings.Contains(first[i], want) {
			t.Errorf("got %q, want %q", first[i], want)
		}
	}
	if !strings.Contains(first[2], "|103=6|") {
		t.Errorf("got %q, want the reason of a duplicate", first[2])
	}
	if id := regexp.MustCompile(`\|37=p\d/[^|]*\|38=500\|39=0\|`); id.FindString(first[0]) == "" || id.FindString(first[3]) != id.FindString(first[0]) {
		t.Errorf("got %q for what was sent again, want OrderID, OrderQty and OrdStatus of %q", first[3], first[0])
	}
	seq := a.seq
	_ = a.c.Close() // without a Logout
	b := e.dial(name)
	b.seq = seq
	if got := b.on(); !strings.Contains(got, "|35=A|34=11|") {
		t.Fatalf("the Logon at the other service: %q", got)
	}
	b.send("2", "7=1|16=0|")
	b.want("|35=4|34=1|43=Y|")
	for _, want := range first {
		if got := b.receive(); lasting(got) != lasting(want) || !strings.Contains(got, "|43=Y|") {
			t.Errorf("resent as\n%q, was\n%q", got, want)
		}
	}
	b.want("|35=4|34=11|43=Y|")
	b.order("c-4")
	b.want("|35=8|34=12|")
	b.send("D", "43=Y|122=20260101-00:00:00|11=c-old|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|")
	b.want("|35=j|34=13|") // an order of another day
	_ = b.c.Close()
	low := d.dial(name)
	if got := low.on(); !strings.Contains(got, "|35=5|34=14|") || !strings.Contains(got, "|58=MsgSeqNum too low, expecting 15 but received 1|") {
		t.Errorf("a Logon with number 1: %q", got)
	}
	again := e.dial(name)
	again.send("A", "98=0|108=30|141=Y|553=u|554=right|")
	again.want("|35=A|34=1|")
	again.order("c-5")
	again.want("|35=8|34=2|")
	again.seq = 0
	again.send("A", "98=0|108=30|141=Y|553=u|554=right|") // in the middle of a session
	again.want("|35=A|34=1|")
	again.order("c-6")
	again.want("|35=8|34=2|")
	again.send("1", "112=there|")
	again.want("|35=0|34=3|")
}

// The password of a second connection is looked at before it is told that the session is in use.
func secondConnection(t *testing.T, g *testgrid.Grid) {
	d := serve(t, g, nil, "H")
	if _, got := d.logon("H", "right"); !strings.Contains(got, "|35=A|") {
		t.Fatalf("logon: %q", got)
	}
	if _, got := d.logon("H", "wrong"); got != "" {
		t.Errorf("with a wrong password: %q", got)
	}
	if r := d.status().Refused; len(r) != 1 || r[0].Reason != "Credentials" {
		t.Errorf("refused: %+v, want for the password", r)
	}
}
