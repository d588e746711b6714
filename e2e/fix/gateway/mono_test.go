package gateway

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// A program of .NET, with nothing but its class library, has a session: each order has its report, over two connections,
// and its numbers go on. Mono compiles and runs it.
func TestNETProgram(t *testing.T) {
	mcs, err1 := exec.LookPath("mcs")
	mono, err2 := exec.LookPath("mono")
	if err1 != nil || err2 != nil {
		if os.Getenv("ORDERGRID_REQUIRE_MONO") != "" {
			t.Fatal("mcs or mono is not there (apt-get install mono-mcs mono-runtime)")
		}
		t.Skip("mcs or mono is not there (apt-get install mono-mcs mono-runtime)")
	}
	program := filepath.Join(t.TempDir(), "counterparty.exe")
	if out, err := exec.CommandContext(t.Context(), mcs, "-out:"+program, "../mono/Counterparty.cs").CombinedOutput(); err != nil {
		t.Fatalf("mcs: %v: %s", err, out)
	}
	g := testgrid.Run(t)
	w := startTwo(t, g, "NET")
	host, port, err := net.SplitHostPort(w.addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	const orders = 200
	cmd := exec.CommandContext(t.Context(), mono, program, host, port, "NET", "GRID", "user", fmt.Sprint(orders))
	cmd.Env = append(os.Environ(), "COUNTERPARTY_PASSWORD=right")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for n := range orders {
		if want := fmt.Sprintf("report NET-%d 0 ", n); strings.Count(string(out), want) != 1 {
			t.Errorf("%q is %d times in the output, expected once", want, strings.Count(string(out), want))
		}
	}
}
