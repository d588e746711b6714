package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

// The page is that of the tree, and each row that works is shown by something that is there.
func TestPageIsOfTheTree(t *testing.T) {
	drifted, err := run(true)
	if err != nil {
		t.Fatal(err)
	}
	if len(drifted) > 0 {
		t.Errorf("%s differs; run `go run ./hack/coverage` and read the difference", page)
	}
}

func TestWrongRowsAreFound(t *testing.T) {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]row{
		`status "fine", allowed`:               {status: "fine"},
		"nothing shows it":                     {status: works},
		"without words":                        {status: notBuilt},
		"no test TestNothing in hack/coverage": {status: works, evidence: "test:hack/coverage.TestNothing"},
		"order-probe runs no such scenario":    {status: works, evidence: "scenario:no-such"},
		"no such heading":                      {status: works, evidence: "page:docs/probe.md#no-such"},
		"no such file":                         {status: works, evidence: "page:docs/no-such.md"},
		"allowed: test:DIR.TestNAME":           {status: works, evidence: "TestX"},
		"":                                     {status: works, evidence: "test:hack/coverage.TestWrongRowsAreFound scenario:stac-pair page:docs/probe.md#the-probe"},
	} {
		err := errors.Join(check(root, []row{r})...)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}
