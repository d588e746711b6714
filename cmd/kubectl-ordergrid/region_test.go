package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestRegionsOfARealGrid: what the commands of region print and return, against processes.
func TestRegionsOfARealGrid(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	g := testgrid.Run(t, "--", "--regions", file("regions.yaml", "memory: 16Mi\nregions:\n- name: positions\n- {name: quotes, life: 1h, maxBytes: 1Mi}\n"))
	endpoint := "--endpoint=" + strings.Join(g.Endpoints, ",")
	ask := func(code int, wantErr string, args ...string) string {
		t.Helper()
		out, err := run(append(append([]string{"region"}, args...), endpoint)...)
		var exit exitError
		switch {
		case code != 0 && (!errors.As(err, &exit) || int(exit) != code),
			wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)),
			code == 0 && wantErr == "" && err != nil:
			t.Fatalf("%v: %v, want exit code %d, error %q\n%s", args, err, code, wantErr, out)
		}
		return out
	}
	const key = "ACC-1/IBM"
	if out := ask(1, "", "get", "dev", "positions", key); !strings.Contains(out, "has no value") {
		t.Errorf("of a key without a value: %q", out)
	}
	ask(0, "", "put", "dev", "positions", key, "100", "--if-version=0")
	var e entryJSON
	out := ask(0, "", "get", "dev", "positions", key, "-o=json")
	if err := json.Unmarshal([]byte(out), &e); err != nil || e.Key != key || e.Value == nil || *e.Value != "100" || e.Version == 0 || e.Expires != nil {
		t.Fatalf("%v: as JSON: %s", err, out)
	}
	if out := ask(1, "", "put", "dev", "positions", key, "150", "--if-version=0"); !strings.Contains(out, fmt.Sprintf("has version %d", e.Version)) {
		t.Errorf("a put where there is a value: %q", out)
	}
	ask(0, "", "put", "dev", "positions", key, "150", fmt.Sprintf("--if-version=%d", e.Version))
	if out := ask(0, "", "get", "dev", "positions", key); !strings.Contains(out, `value      "150"`) || !strings.Contains(out, "expires    never") {
		t.Errorf("as text: %s", out)
	}
	ask(0, "", "put", "dev", "quotes", "IBM", "--file="+file("quote", "\xff\x00q"))
	if out := ask(0, "", "get", "dev", "quotes", "IBM", "-o=raw"); out != "\xff\x00q" {
		t.Errorf("byte for byte: %q", out)
	}
	if out := ask(0, "", "get", "dev", "quotes", "IBM", "-o=json"); !strings.Contains(out, `"valueBase64": "/wBx"`) || !strings.Contains(out, `"expires": "2`) {
		t.Errorf("a value that is no text: %s", out)
	}
	ask(0, "", "put", "dev", "quotes", "IBM", "--forever", "x")
	if out := ask(0, "", "get", "dev", "quotes", "IBM"); !strings.Contains(out, "expires    never") {
		t.Errorf("for ever: %s", out)
	}
	var list []regionJSON
	if out := ask(0, "", "ls", "dev", "-o=json"); json.Unmarshal([]byte(out), &list) != nil || len(list) != 2 || list[0].Entries != 1 || list[0].Life != "" || list[1].MaxBytes == 0 || list[1].Life != "1h0m0s" {
		t.Errorf("the list: %s", out)
	}
	for i := range 20 {
		ask(0, "", "put", "dev", "quotes", fmt.Sprint("Q", i), "1")
	}
	var d regionDescription
	if out := ask(0, "", "describe", "dev", "quotes", "-o=json"); json.Unmarshal([]byte(out), &d) != nil || d.Entries != 21 || d.Life != "1h0m0s" || len(d.Partitions) < 2 ||
		d.Partitions[0].Primary == "" || d.Partitions[0].Entries+d.Partitions[1].Entries != 21 || d.Partitions[0].AllBytes < d.Partitions[0].Bytes || d.Partitions[0].AllMost == 0 {
		t.Errorf("the description: %s", out)
	}
	if out := ask(0, "", "describe", "dev", "positions"); !strings.Contains(out, "max bytes  that of all regions") || !strings.Contains(out, "\nPARTITION  PRIMARY") || !strings.Contains(out, "\np1 ") {
		t.Errorf("the description:\n%s", out)
	}
	ask(0, "allowed: one that the grid has: positions, quotes", "describe", "dev", "nowhere")
	if out := ask(1, "", "drop", "dev", "quotes"); !strings.Contains(out, "Remove all 21 entries of region quotes") || !strings.Contains(out, "nothing is removed") {
		t.Errorf("a drop that is not confirmed: %s", out)
	}
	if out := ask(0, "", "drop", "dev", "quotes", "--yes"); strings.Count(out, "emptied, it had") != len(d.Partitions) {
		t.Errorf("a drop: %s", out)
	}
	if out := ask(0, "", "describe", "dev", "quotes"); !strings.Contains(out, "\nentries    0\n") {
		t.Errorf("after it: %s", out)
	}
	ask(0, "", "put", "dev", "quotes", "IBM", "x")
	ask(0, "", "remove", "dev", "positions", key)
	ask(1, "", "remove", "dev", "positions", key)
	if out := ask(0, "", "ls", "dev"); !strings.HasPrefix(out, "REGION     ENTRIES  BYTES") || !strings.Contains(out, "\npositions  0        0") || !strings.Contains(out, "\nquotes     1") {
		t.Errorf("the list after it:\n%s", out)
	}
	ask(0, "region", "put", "dev", "nowhere", key, "1")
	csv := file("v.csv", "account,symbol,qty\nA,IBM,1\nB,IBM,2\nB,IBM,3\n")
	if out := ask(1, "", "load", "dev", "positions", csv, "--key=account,symbol"); !strings.Contains(out, ": 2 accepted, 0 present, 1 refused\nrefused rows, one a line: "+csv+".positions.refused.jsonl\n") {
		t.Errorf("a load: %s", out)
	}
	if out := ask(0, "", "get", "dev", "positions", "B/IBM", "-o=raw"); out != `{"qty":"2"}` {
		t.Errorf("what was loaded: %s", out)
	}
	if out := ask(0, "", "load", "dev", "positions", csv, "--key=account,symbol", "--replace", "--life=1h"); !strings.Contains(out, ": 3 accepted") || strings.Contains(out, "runs before") {
		t.Errorf("a load that replaces: %s", out)
	}
	if out := ask(0, "", "get", "dev", "positions", "B/IBM", "-o=json"); !strings.Contains(out, `{\"qty\":\"3\"}`) || !strings.Contains(out, `"expires"`) {
		t.Errorf("what was replaced: %s", out)
	}
	ask(0, "", "drop", "dev", "positions", "--yes")
	for _, want := range []string{": 2 accepted, 0 present, 1 refused", ": 0 accepted, 2 present, 1 refused"} {
		if out := ask(1, "", "load", "dev", "positions", csv, "--key=account,symbol"); !strings.Contains(out, want) {
			t.Errorf("a load after a drop: %s, want %s", out, want)
		}
	}
	// Orders that were loaded are not sent once more, and it says so.
	orders := file("o.csv", "ClOrdID,Symbol,Side,OrderQty,OrdType,Price,TransactTime\nA-1,VOD.L,1,100,2,71.32,2026-01-02T08:00:00Z\n")
	for i, want := range []string{"1 rows in ", "\nall of them by runs before: nothing was sent; remove " + orders + ".load.json to send them again\n"} {
		if out, err := run("load", "dev", orders, endpoint); err != nil || !strings.Contains(out, want) || !strings.Contains(out, "1 accepted") || i == 0 && strings.Contains(out, "before") {
			t.Errorf("orders: %s, %v, want %s", out, err, want)
		}
	}
	ask(0, "allowed: one of the grid's: positions, quotes", "load", "dev", "nowhere", csv, "--key=account,symbol")
	ask(0, `column "key" of the key is not there`, "load", "dev", "positions", csv)
	for _, wrong := range [][]string{{"load", "dev", "positions"}, {"load", "dev", "positions", csv, "--key=account", "--life=1h", "--forever"}, {"load", "dev", "positions", csv, "--join="}, {"get", "dev", "positions"}, {"put", "dev", "positions", key}, {"put", "dev", "positions", key, "1", "--file=-"}, {"put", "dev", "quotes", key, "1", "--life=-1s"},
		{"put", "dev", "quotes", key, "1", "--life=1s", "--forever"}, {"get", "dev", "quotes", key, "--mode=x"}, {"get", "dev", "quotes", key, "-o=csv"}, {"ls", "dev", "-o=csv"}, {"ls"}, {"describe", "dev"}, {"describe", "dev", "quotes", "-o=csv"}, {"drop", "dev"}} {
		if _, err := run(append([]string{"region"}, wrong...)...); !errors.As(err, new(usageError)) {
			t.Errorf("%v: %v, want wrong usage", wrong, err)
		}
	}
}
