package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/dev"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// A session of the printed names logs on at the FIX port of dev, its order is reported and
// in the grid, and it is logged out before the grid ends.
func TestDevFIX(t *testing.T) {
	for _, version := range []string{"FIX.4.4", "FIXT.1.1"} {
		t.Run(version, func(t *testing.T) { devSession(t, version) })
	}
}

func devSession(t *testing.T, version string) {
	address := proc.PortForTest(t)
	_, port, _ := net.SplitHostPort(address)
	g := startDev(t, "--fix", port)
	if g.info.FIX != address {
		t.Fatalf("dev printed FIX address %q, want %s", g.info.FIX, address)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	send := func(seq int, msgType, rest string) {
		t.Helper()
		at := time.Now().UTC().Format("20060102-15:04:05.000")
		fields := fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=%s|%s", msgType, seq, devSender, at, devTarget, strings.ReplaceAll(rest, "NOW", at))
		if _, err := c.Write(assemble(version, []byte(soh(fields)))); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(want string) {
		t.Helper()
		got := ""
		for !strings.Contains(got, "\x0110=") {
			field, err := in.ReadString(1)
			if err != nil {
				t.Fatalf("%v, want a message with %q", err, want)
			}
			got += field
		}
		if got = strings.ReplaceAll(got, "\x01", "|"); !strings.Contains(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	send(1, "A", "98=0|108=30|553="+devUser+"|554="+devPassword+"|"+map[string]string{"FIXT.1.1": "1137=9|"}[version])
	receive("|35=A|")
	send(2, "D", "11=fix-1|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|")
	receive("|39=0|")
	if out := g.must("get", "--clordid", "fix-1", "--fix-session", version+":BANK->GRID"); !strings.Contains(out, "|11=fix-1|") {
		t.Errorf("the order in the grid: %s", out)
	}
	if err := g.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	receive("|58=this gateway stops; log on again|")
	if out := g.must("get", "--clordid", "fix-1", "--fix-session", version+":BANK->GRID"); !strings.Contains(out, "|11=fix-1|") {
		t.Errorf("the grid ended before the session: %s", out)
	}
	send(3, "5", "")
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("after the Logout: %q, %v, want the end of the connection", rest, err)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("dev ended with %v\n%s", err, g.errs.String())
	}
}

// What --fix cannot go with is refused before anything starts.
func TestDevFIXUsage(t *testing.T) {
	for _, c := range []struct {
		port int
		o    dev.Options
		want string
	}{
		{0, dev.Options{TLS: true}, ""},
		{7440, dev.Options{}, ""},
		{7440, dev.Options{TLS: true}, "with --tls; allowed: without"},
		{7440, dev.Options{Standby: true}, "with --standby; allowed: without"},
		{65536, dev.Options{}, "--fix: value 65536, allowed: 0 (none) or 1..65535"},
	} {
		err := (&devFIX{port: c.port}).check(&c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("--fix %d with %+v: %v, want %q", c.port, c.o, err, c.want)
		}
	}
}
