package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/instrument"
)

// TestMarketShowsPhases: the books of a real grid with a calendar, their states, and their phases.
func TestMarketShowsPhases(t *testing.T) {
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	zone := "UTC" // one in which it is about noon
	if ahead := 12 - time.Now().UTC().Hour(); ahead != 0 {
		zone = fmt.Sprintf("Etc/GMT%+d", -ahead)
	}
	for name, text := range map[string]string{
		file:                               "- {symbol: IBM, tick: \"1\", lot: \"1\", low: \"0\", high: \"1000\"}\n- {symbol: OIL, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}\n",
		file + instrument.CalendarFileName: "{timeZone: " + zone + ", days: [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday], phases: [{at: \"00:00\", state: closed}, {at: \"00:01\", state: call}, {at: \"23:59\", state: closed}]}",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := testgrid.Start(t, testgrid.Options{Args: []string{"--partitions=2", "--", "--execution=match", "--instruments=" + file}})
	var pages []string
	for _, url := range g.HTTP {
		pages = append(pages, "--http="+strings.TrimPrefix(url, "http://"))
	}
	show := func(args ...string) string {
		t.Helper()
		out, err := run(slices.Concat([]string{"market", "dev"}, args, pages)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}
	books := func(args ...string) (list []shownBook) {
		t.Helper()
		if err := json.Unmarshal([]byte(show(append(args, "-o", "json")...)), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	inCall := func(b shownBook) bool { return b.State == "call" && !b.Behind }
	var list []shownBook
	for end := time.Now().Add(time.Minute); len(list) != 2 || !inCall(list[0]) || !inCall(list[1]); time.Sleep(20 * time.Millisecond) {
		if list = books(); time.Now().After(end) {
			t.Fatalf("the books are %+v", list)
		}
	}
	for i, symbol := range []string{"IBM", "OIL"} {
		b := &list[i]
		at, err := time.Parse(time.RFC3339, b.NextAt)
		since, err2 := time.Parse(time.RFC3339, b.PhaseSince)
		if b.Symbol != symbol || b.Phase != "call" || b.Next != "closed" || errors.Join(err, err2) != nil || at.Sub(since) != 23*time.Hour+58*time.Minute || b.Since == "" || b.Until != "" || b.Node == "" {
			t.Errorf("%s is %+v", symbol, *b)
		}
	}
	if b := list[0]; show("IBM") != fmt.Sprintf(`SYMBOL  PARTITION  STATE  SINCE                 UNTIL  PHASE                      NEXT
IBM     %s         call   %s  -      call %s  closed %s
`, b.Partition, b.Since, b.PhaseSince, b.NextAt) {
		t.Errorf("the table is\n%s", show("IBM"))
	}
	// A person halts it: it is in another state than its phase.
	if out, err := run("market", "dev", "OIL", "halt", "--for=1h", "--reason=news", "--endpoint="+g.Endpoints[0]); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if list = books("OIL"); len(list) != 1 || list[0].State != "halted" || list[0].Until == "" || list[0].Phase != "call" || list[0].Behind {
		t.Errorf("a halted book is %+v", list)
	}
	if out, err := run(append([]string{"market", "dev", "XYZ"}, pages...)...); err == nil || !strings.Contains(err.Error(), `book of "XYZ"`) {
		t.Errorf("no book: %v\n%s", err, out)
	}
	if out, err := run(append([]string{"market", "dev", "--http=127.0.0.1:1"}, pages...)...); err == nil || !strings.Contains(err.Error(), "1 of 3 nodes did not answer") || !strings.Contains(out, "IBM") || !strings.Contains(out, "127.0.0.1:1: ") {
		t.Errorf("a node that does not answer: %v\n%s", err, out)
	}
}
