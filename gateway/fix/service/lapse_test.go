package service_test

import (
	"bufio"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

var acceptsAt = regexp.MustCompile(`FIX sessions are accepted" address=(\S+)`)

// process is order-gateway with the files of a desk.
func (d *desk) process(g *testgrid.Grid) (addr string, kill func()) {
	d.Helper()
	cmd := exec.Command(testgrid.Program(d.T, "order-gateway"), "--endpoint", strings.Join(g.Endpoints, ","), "--http", "127.0.0.1:0",
		"--listen", "127.0.0.1:0", "--sessions", filepath.Join(d.dir, "sessions.json"), "--fix-insecure-plain", "--cancel-on-disconnect", "OnDisconnect", "--cancel-grace", "1s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		d.Fatal(err)
	}
	kill = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	d.Cleanup(kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := acceptsAt.FindStringSubmatch(lines.Text()); m != nil {
			go func() {
				for lines.Scan() { // its log is not read
				}
			}()
			return m[1], kill
		}
	}
	d.Fatal("order-gateway accepts no sessions")
	return "", nil
}

// at is a connection to another address.
func (d *desk) at(addr, name string) *peer {
	d.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &peer{d.T, c, bufio.NewReader(c), name, 0, "FIX.4.4"}
}

// TestCancelOnDisconnect: orders of a counterparty that is gone for longer than its grace are
// cancelled, once, and it is told when it logs on; of one that is back in time, or has logged
// out, they are not.
func TestCancelOnDisconnect(t *testing.T) {
	g := testgrid.Matching(t)
	names := []string{"GONE@IBM#OnDisconnect/1s", "BACK@IBM#OnDisconnect/60s", "OUT@IBM#OnDisconnect/1s", "OUTGONE@IBM#OnDisconnectOrLogout/1s", "STAYS@IBM#None/", "KILLED@IBM"}
	d, e := serve(t, g, nil, names...), serve(t, g, nil, names...)
	addr, kill := d.process(g)
	book := downstream.Dial(t, g)
	rests := func(price string) bool {
		b, err := book.ReadBook(t.Context(), "IBM", 20, "")
		if err != nil {
			return true // while a primary is gone
		}
		for _, l := range b.Asks {
			if client.Decimal(l.Price, b.PriceDigits) == price {
				return true
			}
		}
		return false
	}
	enter := func(p *peer, price string) (place string) {
		p.Helper()
		if got := p.on(); !strings.Contains(got, "|35=A|") {
			p.Fatalf("Logon of %s: %q", p.name, got)
		}
		p.send("D", "11="+p.name+"|55=IBM|54=2|60=NOW|38=10|40=2|44="+price+"|")
		return value(p.wants("35=8", "150=0", "11="+p.name), "37")
	}
	prices := map[string]string{"GONE": "125.10", "BACK": "125.20", "OUT": "125.30", "OUTGONE": "125.40", "STAYS": "125.50", "KILLED": "125.60"}
	peers := map[string]*peer{}
	place := ""
	for name, price := range prices {
		if peers[name] = d.dial(name); name == "KILLED" {
			peers[name] = d.at(addr, name)
		}
		place = enter(peers[name], price)
	}
	for _, name := range []string{"OUT", "OUTGONE"} {
		peers[name].send("5", "")
		peers[name].wants("35=5")
	}
	for _, name := range []string{"GONE", "BACK", "STAYS"} {
		_ = peers[name].c.Close()
	}
	kill()
	killPrimary(t, g, place) // the next one counts the grace of all anew
	again := func(name string) *peer {
		p := e.dial(name)
		p.seq = peers[name].seq
		if got := p.on(); !strings.Contains(got, "|35=A|") {
			t.Fatalf("%s is not logged on again: %q", name, got)
		}
		return p
	}
	back := again("BACK")
	for _, name := range []string{"GONE", "OUTGONE", "KILLED"} {
		for n := 0; rests(prices[name]); n++ {
			if n == 600 {
				t.Fatalf("orders of %s rest after 30 s", name)
			}
			time.Sleep(50 * time.Millisecond)
		}
		p := again(name)
		p.send("2", "7=3|16=0|")
		first := p.receive()
		if strings.Contains(first, "|35=4|") { // the answer to the Logout has number 3
			first = p.receive()
		}
		for _, f := range []string{"35=8", "11=" + name, "150=4", "39=4", "151=0", "58=cancel on disconnect", "43=Y"} {
			if !strings.Contains(first, "|"+f+"|") {
				t.Errorf("%s is told %q, want %s", name, first, f)
			}
		}
		p.send("2", "7=3|16=0|")
		for same := ""; lasting(same) != lasting(first); {
			if same = p.receive(); same == "" {
				t.Fatalf("%s is not told the same again", name)
			}
		}
	}
	for _, name := range []string{"BACK", "OUT", "STAYS"} {
		if !rests(prices[name]) {
			t.Errorf("the order of %s was cancelled", name)
		}
	}
	back.send("H", "11=BACK|55=IBM|54=2|")
	back.wants("35=8", "39=0", "151=10")
}

// lapsesAreRefused: a grid that stores orders has none to cancel, and says so.
func lapsesAreRefused(t *testing.T, g *testgrid.Grid) {
	d := serve(t, g, nil, "L#OnDisconnect/1s")
	if _, got := d.logon("L", "right"); got != "" {
		t.Errorf("logged on: %q", got)
	}
	if r := d.status().Refused; len(r) != 1 || r[0].Reason != "NoGrid" || !strings.Contains(r[0].Text, "the grid stores orders and does not execute them, so it has none to cancel") {
		t.Errorf("refused as %+v", r)
	}
}
