package service_test

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// wants checks each of the fields of the next message.
func (p *peer) wants(fields ...string) (got string) {
	p.Helper()
	got = p.receive()
	for _, f := range fields {
		if !strings.Contains(got, "|"+f+"|") {
			p.Errorf("got %q, want %s", got, f)
		}
	}
	return got
}

// TestMatching: two counterparties trade by FIX before a grid that matches. What happens to
// an order while its session is away is reported when it logs on again, at another gateway, and
// is the same whenever it is asked for.
func TestMatching(t *testing.T) {
	for _, version := range []string{"FIX.4.4", "FIXT.1.1"} {
		t.Run(version, func(t *testing.T) { matching(t, version) })
	}
}

func matching(t *testing.T, version string) {
	g := testgrid.Matching(t)
	v := version + ":"
	d, e := serve(t, g, nil, v+"A@IBM", v+"B@IBM", v+"C@OIL"), serve(t, g, nil, v+"A@IBM", v+"B@IBM")
	a, b := d.dial(v+"A"), e.dial(v+"B")
	for _, p := range []*peer{a, b} {
		if got := p.on(); !strings.Contains(got, "|35=A|34=1|") {
			t.Fatalf("the first Logon: %q", got)
		}
	}
	var first []string
	keep := func(m string) { first = append(first, m) }
	a.send("D", "11=x|1=ACCT|55=IBM|54=2|60=NOW|38=100|40=2|44=125.10|")
	keep(a.wants("35=8", "34=2", "150=0", "39=0", "11=x", "1=ACCT", "44=125.10", "151=100", "14=0"))
	b.send("D", "11=x|55=IBM|54=1|60=NOW|38=60|40=2|44=125.20|") // the same ClOrdID: it is another's
	b.wants("34=2", "150=0", "39=0", "151=60")
	b.wants("34=3", "150=F", "39=2", "11=x", "31=125.10", "32=60", "6=125.10", "14=60", "151=0", "54=1")
	keep(a.wants("34=3", "150=F", "39=1", "11=x", "31=125.10", "32=60", "6=125.10", "14=60", "151=40", "38=100", "54=2", "55=IBM"))

	a.send("G", "11=y|41=x|55=IBM|54=2|60=NOW|38=120|40=2|44=125.30|")
	keep(a.wants("34=4", "150=5", "39=1", "11=y", "41=x", "38=120", "14=60", "151=60", "6=125.10"))
	a.send("H", "11=x|55=IBM|54=2|") // under a later ClOrdID now
	keep(a.wants("34=5", "150=I", "39=1", "11=y", "38=120", "14=60", "151=60", "44=125.30", "6=125.10"))
	a.send("F", "11=z|41=x|55=IBM|54=2|60=NOW|38=100|")
	keep(a.wants("35=9", "34=6", "102=1", "39=8", "11=z", "41=x", "37=NONE", "434=1"))
	a.send("D", "11=tick|55=IBM|54=2|60=NOW|38=1|40=2|44=125.11|")
	keep(a.wants("34=7", "150=8", "39=8", "103=99"))
	a.send("D", "11=nowhere|55=INTC|54=2|60=NOW|38=1|40=2|44=1|")
	if got := a.wants("34=8", "150=8", "39=8", "37=NONE"); !strings.Contains(got, "a session trades the symbols of its segment") {
		t.Errorf("got %q, want the segment named", got)
	} else {
		keep(got)
	}
	seq := a.seq
	_ = a.c.Close()

	b.send("H", "11=x|55=IBM|54=1|790=q-1|") // filled
	b.wants("34=4", "150=I", "39=2", "11=x", "38=60", "14=60", "151=0", "6=125.10", "790=q-1")
	b.send("H", "11=y|55=IBM|54=2|") // another's
	b.wants("34=5", "150=I", "39=8", "103=5", "37=NONE")
	b.send("D", "11=sweep|55=IBM|54=1|60=NOW|38=70|40=2|44=126|59=3|")
	b.wants("34=6", "150=0", "11=sweep")
	b.wants("34=7", "150=F", "39=1", "31=125.30", "32=60", "151=10")
	b.wants("34=8", "150=4", "39=4", "14=60", "151=0", "58=unfilled")

	a = e.dial(v + "A")
	a.seq = seq
	if got := a.on(); !strings.Contains(got, "|35=A|34=10|") {
		t.Fatalf("the Logon at the other gateway, after a fill: %q", got)
	}
	a.send("2", "7=2|16=0|")
	for _, want := range first {
		if got := a.receive(); lasting(got) != lasting(want) || !strings.Contains(got, "|43=Y|") {
			t.Errorf("resent as\n%q, was\n%q", got, want)
		}
	}
	a.wants("34=9", "43=Y", "150=F", "39=2", "11=y", "31=125.30", "32=60", "6=125.20", "14=120", "151=0", "38=120")

	c := d.dial(v + "C")
	c.on()
	c.send("D", "11=oil|55=OIL|54=2|60=NOW|38=1|40=2|44=-7|")
	c.wants("34=2", "150=0", "11=oil")
	reader := downstream.Dial(t, g)
	for name, id := range map[string]string{"A": "y", "C": "oil"} { // of sessions of either segment
		if o, err := reader.GetFix(t.Context(), client.FixSessionOf(version, name, "GRID"), client.FixToday, id); err != nil || !strings.Contains(string(o.FIX), "\x0111="+id+"\x01") {
			t.Errorf("order %s of %s: %q, %v", id, name, o.FIX, err)
		}
	}
}
