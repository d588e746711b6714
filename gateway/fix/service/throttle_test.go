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
	c := downstream.Dial(t, g)
	for n := 0; ; n++ {
		all, err := c.Limits(t.Context())
		in := 0
		for i := range all {
			if strings.Contains(all[i].Profile, "rate") {
				in++
			}
		}
		if err == nil && in == len(c.Table()) {
			break
		}
		if n == 600 {
			t.Fatalf("the limits are not in force: %v, %+v", err, all)
		}
		time.Sleep(50 * time.Millisecond)
	}
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
	for _, want := range []string{"|35=8|", "|39=8|", "|103=99|", "maxMessages"} {
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
