package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestKillOfARealGrid: a kill of all cancels what rests, and the command says how many orders that
// were, in each partition.
func TestKillOfARealGrid(t *testing.T) {
	endpoint := exchangeGrid(t)
	count := regexp.MustCompile(`(\d+) orders`)
	out, total := "", 0
	for range 100 { // until every copy has said that it cancels what a kill means
		var err error
		if out, err = run("kill", "dev", "--all", "--reason", "drill", "--wait", endpoint); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "of a release before") {
			break
		}
	}
	for _, m := range count.FindAllStringSubmatch(out, -1) {
		n, _ := strconv.Atoi(m[1])
		total += n
	}
	t.Logf("\n%s", out)
	if total != 5 || !strings.Contains(out, "CANCELLED") {
		t.Errorf("%d orders cancelled, want 5:\n%s", total, out)
	}
	for _, symbol := range []string{"IBM", "OIL"} {
		if book, err := run("book", "dev", symbol, endpoint); err != nil || strings.Contains(book, "      1  ") {
			t.Errorf("orders rest in %s behind the kill: %v\n%s", symbol, err, book)
		}
	}
	out, err := run("unkill", "dev", "--all", "--reason", "fixed", endpoint)
	if err != nil || strings.Contains(out, "CANCELLED") {
		t.Errorf("unkill: %v\n%s", err, out)
	}
}

// TestKillOfAGridThatStores: nothing rests there, and nothing is said of it.
func TestKillOfAGridThatStores(t *testing.T) {
	out, err := run("kill", "dev", "--all", "--reason", "drill", "--wait", "--endpoint="+strings.Join(testgrid.Run(t).Endpoints, ","))
	if err != nil || strings.Contains(out, "CANCELLED") || !strings.Contains(out, "killed") {
		t.Errorf("%v\n%s", err, out)
	}
}
