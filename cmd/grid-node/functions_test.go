package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// files writes a module and a configuration.
func functionFiles(t *testing.T) (module, config, sum string) {
	t.Helper()
	dir := t.TempDir()
	module, config = filepath.Join(dir, "a:b,c=d.wasm"), filepath.Join(dir, "limits")
	for path, b := range map[string][]byte{module: examples.FatFinger, config: []byte("quantity=100\n")} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return module, config, fmt.Sprintf("%x", sha256.Sum256(examples.FatFinger))
}

func TestFunctionFlags(t *testing.T) {
	module, config, sum := functionFiles(t)
	f := functionFlags{pre: []string{"finger=" + module + ":sha256=" + sum + ",fuel=5000,memory=128Ki,onError=Pass,tags=10001+10002,config=" + config + fmt.Sprintf(",configSHA256=%x", sha256.Sum256([]byte("quantity=100\n")))}, stamp: 10003}
	fs, err := f.options()
	if err != nil {
		t.Fatal(err)
	}
	p := fs.Pre[0]
	if p.Name != "finger" || len(p.Module) != len(examples.FatFinger) || p.SHA256 != sha256.Sum256(examples.FatFinger) || p.Fuel != 5000 ||
		p.Pages != 2 || p.OnError != function.Pass || fmt.Sprint(p.Tags) != "[10001 10002]" || string(p.Config) != "quantity=100\n" || fs.Stamp != 10003 {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct{ value, want string }{
		{"finger", "no NAME, FILE or sha256"},
		{"finger=" + module, "no NAME, FILE or sha256"},
		{"finger=" + module + ":sha256=12", "64 hexadecimal digits"},
		{"finger=" + module + ":sha256=" + sum + ",fuel=0", `fuel is "0"`},
		{"finger=" + module + ":sha256=" + sum + ",memory=1", `memory is "1"`},
		{"finger=" + module + ":sha256=" + sum + ",onError=pass", `onError is "pass"`},
		{"finger=" + module + ":sha256=" + sum + ",tags=1,2", `"2" is not known`},
		{"finger=" + module + "x:sha256=" + sum, "no such file"},
		{"finger=" + module + ":sha256=" + sum + ",config=/nowhere", "no such file"},
		{"finger=" + module + ":sha256=" + sum + ",config=" + config + ",configSHA256=" + sum, "the configuration has sha256"},
	} {
		f := functionFlags{pre: []string{c.value}}
		if _, err := f.options(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.value, err, c.want)
		}
	}
	if _, err := (&functionFlags{stamp: 1}).options(); err == nil {
		t.Error("a stamp without functions")
	}
}

// TestFunctionOfAGrid gives a grid a function by its flag.
func TestFunctionOfAGrid(t *testing.T) {
	module, config, sum := functionFiles(t)
	g := startDev(t, "--", "--function-pre", "finger="+module+":sha256="+sum+",config="+config)
	code, stdout, stderr := call(t, "", "submit", "--endpoint", g.endpoint(), "--clordid", "too-many") // 500 of them
	if code != 1 || !strings.Contains(stderr, "FunctionRefused") || !strings.Contains(stderr, "quantity above the limit") {
		t.Errorf("exit code %d, %s %s, want a refusal by the function", code, stdout, stderr)
	}
}
