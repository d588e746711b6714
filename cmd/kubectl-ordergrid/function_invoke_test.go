package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// TestInvokeOfARealGrid: what function invoke prints and returns, against processes.
func TestInvokeOfARealGrid(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	g := testgrid.Run(t, "--", "--regions", file("regions.yaml", []byte("memory: 16Mi\nregions: [{name: positions}]\n")),
		"--function-compute", fmt.Sprintf("add=%s:sha256=%x", file("add.wasm", examples.Add), sha256.Sum256(examples.Add)))
	endpoint := "--endpoint=" + strings.Join(g.Endpoints, ",")
	const key, hundred = "ACC-1/IBM", "6400000000000000"
	call := func(code int, wantErr string, args ...string) string {
		t.Helper()
		out, err := run(append(append([]string{"function", "invoke", "dev"}, args...), endpoint)...)
		var exit exitError
		switch {
		case code != 0 && (!errors.As(err, &exit) || int(exit) != code),
			wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)),
			code == 0 && wantErr == "" && err != nil:
			t.Fatalf("%v: %v, want exit code %d, error %q\n%s", args, err, code, wantErr, out)
		}
		return out
	}
	if out := call(0, "", "positions", "add", key, "--args-hex", hundred); !strings.HasPrefix(out, "entry  p") || !strings.Contains(out, `reply  "d\x00`) || !strings.Contains(out, "hex    "+hundred+"\n") {
		t.Errorf("as text: %s", out)
	}
	if out := call(0, "", "positions", "add", key, "--args-file", file("args", []byte("\x64\x00\x00\x00\x00\x00\x00\x00")), "-o=hex"); out != "c800000000000000\n" {
		t.Errorf("in digits: %q", out)
	}
	if out := call(0, "", "positions", "add", key, "--args-hex", hundred, "-o=raw"); out != "\x2c\x01\x00\x00\x00\x00\x00\x00" {
		t.Errorf("byte for byte: %q", out)
	}
	var j replyJSON
	if out := call(0, "", "positions", "add", key, "--args-hex", "f0ffffffffffffff", "-o=json"); json.Unmarshal([]byte(out), &j) != nil || j.Reply == nil && string(j.ReplyBase64) != "\x1c\x01\x00\x00\x00\x00\x00\x00" || !strings.HasPrefix(j.Entry, "p") || j.Epoch == 0 {
		t.Errorf("as JSON: %s", out)
	}
	if out := call(exitFailedCall, "", "positions", "add", key, "--args", "1"); !strings.Contains(out, "function add returned error 1: the value and the arguments have 8 bytes each; nothing was changed") {
		t.Errorf("an error of the function: %q", out)
	}
	call(0, "status.functions of the OrderGrid", "positions", "subtract", key)
	call(0, "region", "nowhere", "add", key)
	for _, wrong := range [][]string{{"positions", "add"}, {"positions", "add", key, "--args-hex=6"}, {"positions", "add", key, "-o=yaml"}, {"positions", "add", key, "--args-file=" + filepath.Join(dir, "none")}, {"positions", "add", key, "--args=a", "--args-hex=61"}} {
		if _, err := run(append([]string{"function", "invoke", "dev"}, wrong...)...); !errors.As(err, new(usageError)) {
			t.Errorf("%v: %v, want wrong usage", wrong, err)
		}
	}
}
