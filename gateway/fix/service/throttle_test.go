package service_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestThrottle: maxMessages of the limits is the throttle of a FIX session. What it sends beyond
// is refused, one by one, with rule and numbers; the count is the session's alone, and the next
// primary's too.
func TestThrottle(t *testing.T) {
	const burst = 150
	file := filepath.Join(t.TempDir(), "limits.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"name": "rate", "maxMessages": {"perSecond": 1, "burst": %d}}`, burst), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Matching(t, "--limits", file)
	inForce(t, g, "rate")
	d := serve(t, g, nil, "A@IBM", "B@IBM")
	a, b := d.dial("A"), d.dial("B")
	a.on()
	b.on()
	place, last := "", ""
	send := func(round string) (refused int) {
		for i := range burst + 1 {
			a.send("D", fmt.Sprintf("11=%s%d|55=IBM|54=2|60=NOW|38=10|40=2|44=126.00|", round, i))
		}
		for range burst + 1 {
			if m := a.receive(); strings.Contains(m, "|150=8|") {
				refused, last = refused+1, m
			} else {
				place = value(m, "37")
			}
		}
		return refused
	}
	if n := send("x"); n == 0 {
		t.Fatalf("%d orders at once, and none is refused", burst+1)
	}
	for _, want := range []string{"|35=8|", "|39=8|", "|103=0|", "maxMessages"} {
		if !strings.Contains(last, want) {
			t.Errorf("refused as %q, want %s", last, want)
		}
	}
	killPrimary(t, g, place)
	if n := send("y"); n == 0 {
		t.Errorf("the next primary has forgotten %d orders", burst)
	}
	b.send("D", "11=b|55=IBM|54=2|60=NOW|38=10|40=2|44=126.00|")
	b.wants("35=8", "150=0", "11=b")
}

// inForce waits until the limits of a name are in force in all partitions.
func inForce(t *testing.T, g *testgrid.Grid, name string) {
	t.Helper()
	c := downstream.Dial(t, g)
	for n := 0; ; n++ {
		all, err := c.Limits(t.Context())
		in := 0
		for i := range all {
			if strings.Contains(all[i].Profile, name) {
				in++
			}
		}
		if err == nil && in == len(c.Table()) {
			return
		}
		if n == 600 {
			t.Fatalf("the limits are not in force: %v, %+v", err, all)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestLimitReasons: a report has the reason of the rule that refuses, and has it when it is asked for again, by another
// gateway.
func TestLimitReasons(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.json")
	if err := os.WriteFile(file, []byte(`{"name": "reasons", "priceDigits": 2, "quantityDigits": 0, "traderTag": 50, "maxOrderVolume": "100",
		"maxOrderValue": "5000", "priceCollar": {"referenceBps": 1000}, "duplicateWindowMs": 600000,
		"referencePrices": [{"symbol": "IBM", "price": "100"}], "restrictedSymbols": ["XYZ"], "authorisedPersons": ["ann"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Run(t, "--limits", file)
	inForce(t, g, "reasons")
	d, e := serve(t, g, nil, "L"), serve(t, g, nil, "L")
	a := d.dial("L")
	a.on()
	var first []string
	for i, c := range []struct{ order, reason, text string }{
		{"50=ann|11=N|55=IBM|54=1|60=NOW|38=101|40=2|44=100|", "103=3", "58=maxOrderVolume"},
		{"50=ann|11=N|55=IBM|54=1|60=NOW|38=1|40=2|44=150|", "103=3", "58=priceCollar"},
		{"50=ann|11=N|55=IBM|54=1|60=NOW|38=60|40=2|44=100|", "103=3", "58=maxOrderValue"},
		{"50=ann|11=N|55=IBM|54=1|60=NOW|38=10|40=2|44=100|", "150=0", "39=0"},
		{"50=ann|11=N|55=IBM|54=1|60=NOW|38=10|40=2|44=100|", "103=6", "58=duplicateWindow"},
		{"50=ann|11=N|55=XYZ|54=1|60=NOW|38=10|40=2|44=100|", "103=0", "58=restrictedSymbols"},
		{"50=bob|11=N|55=IBM|54=1|60=NOW|38=11|40=2|44=100|", "103=0", "58=authorisedPersons"},
		{"50=ann|11=N|55=IBM|54=1|60=NOW|152=500|40=2|44=100|", "103=13", "58=digits"},
		{"50=ann|11=N|55=IBM|54=1|60=NOW|38=1|40=2|44=100.001|", "103=99", "58=digits"},
		{"50=ann|11=N|55=ABC|54=1|60=NOW|38=1|40=2|44=100|", "103=99", "58=priceCollar"},
	} {
		a.send("D", strings.Replace(c.order, "11=N", fmt.Sprintf("11=r-%d", i), 1))
		got := a.receive()
		if first = append(first, got); !strings.Contains(got, "|35=8|") || !strings.Contains(got, "|"+c.reason+"|") || !strings.Contains(got, "|"+c.text) {
			t.Errorf("%s: got %q, want %s, %s", c.order, got, c.reason, c.text)
		}
	}
	seq := a.seq
	_ = a.c.Close()
	b := e.dial("L")
	b.seq = seq
	b.on()
	b.send("2", "7=2|16=0|")
	for _, want := range first {
		if got := b.receive(); lasting(got) != lasting(want) || !strings.Contains(got, "|43=Y|") {
			t.Errorf("resent as\n%q, was\n%q", got, want)
		}
	}
}
