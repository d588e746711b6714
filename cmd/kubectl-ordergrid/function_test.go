package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// functionTest runs the command over three orders, of which one is too large and one is not
// valid.
func functionTest(t *testing.T, module []byte, args ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	small, err := os.ReadFile("../../grid-node/order/testdata/order-305-fix44.txt")
	if err != nil {
		t.Fatal(err)
	}
	large, err := function.Amend(nil, small, []function.Set{{Tag: 38, Value: []byte("5000000")}})
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.Replace(small, []byte("\x0138="), []byte("\x0138=x"), 1)
	files := map[string][]byte{"f.wasm": module, "limits": []byte("quantity=1000000"), "orders.fix": bytes.Join([][]byte{small, large, broken, nil}, []byte("\n"))}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs(append([]string{"function", "test", filepath.Join(dir, "f.wasm"), "--orders", filepath.Join(dir, "orders.fix")}, expand(args, dir)...))
	err = root.ExecuteContext(t.Context())
	return out.String(), err
}

func expand(args []string, dir string) []string {
	var out []string
	for _, a := range args {
		out = append(out, strings.ReplaceAll(a, "DIR", dir))
	}
	return out
}

func TestFunctionTest(t *testing.T) {
	out, err := functionTest(t, examples.FatFinger, "--config", "DIR/limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"orders    2, and 1 that are not valid", "accepted  1, refused 1, changed 0",
		"refused 1: 103=3 fat-finger: quantity above the limit", "failed    0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, err = functionTest(t, examples.AuditTrail, "--kind", "Post", "--fuel", "1000000", "-o", "json")
	var r trialReport
	if jsonErr := json.Unmarshal([]byte(out), &r); err != nil || jsonErr != nil || r.Records != 2 || r.Fuel.P99 < 1000 {
		t.Errorf("%v, %v, %+v", err, jsonErr, r)
	}
}

func TestFunctionTestFails(t *testing.T) {
	var exit exitError
	out, err := functionTest(t, examples.FatFinger, "--fuel", "60")
	if !errors.As(err, &exit) && !strings.Contains(err.Error(), "out of fuel") {
		t.Errorf("little fuel: %v\n%s", err, out)
	}
	if _, err = functionTest(t, examples.FatFinger, "--kind", "Post"); err == nil || !strings.Contains(err.Error(), `no export "og1_post"`) {
		t.Errorf("another kind: %v", err)
	}
	var usage usageError
	if _, err = functionTest(t, examples.FatFinger, "--on-error", "Ignore"); !errors.As(err, &usage) {
		t.Errorf("a value that is not allowed: %v", err)
	}
}
