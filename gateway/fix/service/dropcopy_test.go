package service_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/fix/service"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// copies are drop copies for session RISK.
func copies(partition *int, of ...string) []roster.DropCopy {
	c := roster.DropCopy{Name: "risk", Session: "FIX.4.4:RISK->GRID", Partition: partition}
	for _, session := range of {
		version, name := versionOf(session)
		c.Sessions = append(c.Sessions, version+":"+name+"->GRID")
	}
	return []roster.DropCopy{c}
}

// copying is order-gateway with the files of a desk and these drop copies.
func (d *desk) copying(g *testgrid.Grid, list []roster.DropCopy) (addr string, kill func()) {
	d.Helper()
	text, err := json.Marshal(list[0])
	if err != nil {
		d.Fatal(err)
	}
	cmd := exec.Command(testgrid.Program(d.T, "order-gateway"), "--endpoint", strings.Join(g.Endpoints, ","), "--http", "127.0.0.1:0",
		"--listen", "127.0.0.1:0", "--sessions", filepath.Join(d.dir, "sessions.json"), "--fix-insecure-plain", "--drop-copy", string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		d.Fatal(err)
	}
	kill = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
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

// target is the counterparty that gets copies: it keeps the rules of FIX, and what it was sent.
type target struct {
	*peer
	next  int            // the number that it expects
	seen  map[int]string // by number
	asked bool
}

// logOn logs on at an address, with the numbers that it has.
func (x *target) logOn(d *desk, addr string) {
	d.Helper()
	seq := 0
	if x.peer != nil {
		seq = x.seq
	}
	for n := 0; ; n++ {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			d.Fatal(err)
		}
		d.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		x.peer = &peer{d.T, c, bufio.NewReader(c), "RISK", seq, "FIX.4.4"}
		if got := x.on(); strings.Contains(got, "|35=A|") {
			x.asked = false
			x.take(got)
			return
		} else if n == 100 {
			d.Fatalf("the target is not logged on: %q; %+v", got, d.status().Refused)
		}
		seq = x.seq // the gateway of before may hold the session still
		time.Sleep(50 * time.Millisecond)
	}
}

// take handles a message: numbers have no gap, but for those that are asked for.
func (x *target) take(m string) {
	x.Helper()
	n, err := strconv.Atoi(value(m, "34"))
	if err != nil {
		x.Fatalf("message without a number: %q", m)
	}
	if strings.Contains(m, "|35=2|") { // nothing of this side is sent again
		seq := x.seq
		x.seq, _ = strconv.Atoi(value(m, "7"))
		x.seq--
		x.send("4", fmt.Sprintf("43=Y|122=NOW|36=%d|123=Y|", seq+1))
		x.seq = seq
	}
	switch {
	case n < x.next:
		if before := x.seen[n]; !strings.Contains(m, "|43=Y|") || before != "" && strings.Contains(m, "|35=8|") && lasting(m) != lasting(before) {
			x.Errorf("number %d, expected was %d: %q, before %q", n, x.next, m, before)
		}
	case n > x.next:
		if !x.asked {
			x.asked = true
			x.send("2", fmt.Sprintf("7=%d|16=0|", x.next))
		}
		return
	default:
		x.next++
	}
	if x.asked = false; strings.Contains(m, "|35=4|") {
		to, _ := strconv.Atoi(value(m, "36"))
		x.next = max(x.next, to)
		return
	}
	if x.seen[n] == "" {
		x.seen[n] = m
	}
}

// settle takes messages until a TestRequest is answered. While messages are resent, its answer is
// gap filled.
func (x *target) settle(id string) {
	x.Helper()
	x.send("1", "112="+id+"|")
	for m := ""; !strings.Contains(m, "|112="+id+"|"); x.take(m) {
		if m = x.receive(); strings.Contains(m, "|35=4|") {
			x.send("1", "112="+id+"|")
		}
	}
}

// until takes messages until there are so many copies.
func (x *target) until(n int) {
	x.Helper()
	for len(x.copies()) < n {
		m := x.receive()
		if m == "" {
			x.Fatalf("the connection has ended after %d copies, want %d", len(x.copies()), n)
		}
		x.take(m)
	}
}

// copies returns the copies in the order of their numbers.
func (x *target) copies() (list []string) {
	for n := 1; n < x.next; n++ {
		if strings.Contains(x.seen[n], "|797=Y|") {
			list = append(list, x.seen[n])
		}
	}
	return list
}

// body is a report without its header: what its copy has too.
func body(m string) string {
	var keep []string
	for _, f := range strings.Split(strings.Trim(m, "|"), "|") {
		switch tag, _, _ := strings.Cut(f, "="); tag {
		case "8", "9", "10", "34", "35", "43", "49", "52", "56", "115", "122", "128", "797":
		default:
			keep = append(keep, f)
		}
	}
	return strings.Join(keep, "|")
}

// TestDropCopies: sessions enter orders while the target of their copies loses its gateway and its
// primary. It has one copy of each ExecutionReport of the sessions in its partition, with its name,
// in the order of that session, and none of others; and gets the same when it asks again.
func TestDropCopies(t *testing.T) {
	const orders = 400
	g := testgrid.Run(t)
	reader := downstream.Dial(t, g)
	home := func(name string) int { return int(reader.RouteFix(client.FixSessionOf("FIX.4.4", name, "GRID"))) }
	names := []string{"S0", "S1", "S2", "S3", "S4", "S5"}
	partition := home("S0")
	list := copies(&partition)
	with := func(c *service.Config) { c.Roster.DropCopies = list }
	d, e := serve(t, g, with, append(names, "RISK")...), serve(t, g, with, append(names, "RISK")...)
	addr, kill := d.copying(g, list)
	risk := &target{next: 1, seen: map[int]string{}}
	risk.logOn(d, addr)
	risk.settle("there") // behind it, the grid knows the sources

	var load sync.WaitGroup
	reports := make([][]string, len(names))
	for i, name := range names {
		p := d.dial(name)
		if got := p.on(); !strings.Contains(got, "|35=A|") {
			t.Fatalf("Logon of %s: %q", name, got)
		}
		load.Go(func() {
			for n := range orders {
				switch {
				case n%10 == 3: // the grid refuses it
					p.order(fmt.Sprint(name, "-", n-1))
				case n%10 == 5:
					p.send("F", fmt.Sprintf("11=%s-%d|41=%s-%d|55=INTC|54=1|60=NOW|38=500|", name, n, name, n-1))
				case n%10 == 7: // no event
					p.send("H", fmt.Sprintf("11=%s-%d|55=INTC|54=1|", name, n-1))
				default:
					p.order(fmt.Sprint(name, "-", n))
				}
				m := p.receive()
				if m == "" {
					t.Errorf("the connection of %s has ended", name)
					return
				}
				if home(name) == partition && !strings.Contains(m, "|150=I|") {
					reports[i] = append(reports[i], m)
				}
			}
		})
	}
	risk.until(50)
	kill() // the gateway, with copies under way
	risk.logOn(e, e.Addrs()[0])
	risk.until(150)
	killPrimary(t, g, fmt.Sprintf("p%d/1", partition))
	risk.until(300)
	_ = risk.c.Close() // copies go on meanwhile
	load.Wait()
	risk.logOn(d, d.Addrs()[0])
	want := map[string][]string{}
	all := 0
	for i, name := range names {
		for _, m := range reports[i] {
			want[name] = append(want[name], body(m))
			all++
		}
	}
	risk.until(all)
	risk.settle("end")
	got := map[string][]string{}
	for _, m := range risk.copies() {
		if value(m, "115") != "GRID" || value(m, "56") != "RISK" || value(m, "35") != "8" {
			t.Errorf("a copy is %q", m)
		}
		got[value(m, "128")] = append(got[value(m, "128")], body(m))
	}
	for _, name := range names {
		if len(got[name]) != len(want[name]) {
			t.Errorf("%d copies of %d reports of %s (partition %d)", len(got[name]), len(want[name]), name, home(name))
			continue
		}
		for i := range want[name] {
			if got[name][i] != want[name][i] {
				t.Errorf("copy %d of %s is\n%s, its report is\n%s", i, name, got[name][i], want[name][i])
				break
			}
		}
	}
	if len(risk.copies()) != all {
		t.Errorf("%d copies of %d reports", len(risk.copies()), all)
	}
	risk.send("2", "7=1|16=0|") // all of them again: take compares
	risk.settle("again")
}

// told checks that the pages of all nodes say which session gets copies.
func told(t *testing.T, g *testgrid.Grid) {
	t.Helper()
	open := 0
	for _, address := range g.HTTP {
		n, err := nodestatus.Get(t.Context(), nodestatus.NewClient(5*time.Second, nil), strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		id, targets := client.FixSessionOf("FIX.4.4", "RISK", "GRID"), 0
		for _, p := range n.Partitions {
			for _, c := range p.DropCopies {
				if targets++; c.Session != fmt.Sprintf("%016x%016x", id[0], id[1]) || c.Sources != 2 || c.SinceSeq == 0 || c.Day == "" {
					t.Errorf("%s gets copies by %s: %+v", c.Session, n.Pod, c)
				}
				if c.Open {
					open++
				}
			}
		}
		if targets != 1 {
			t.Errorf("%d sessions get copies by %s, want 1", targets, n.Pod)
		}
	}
	if open != 1 {
		t.Errorf("the session is open at %d nodes, want at its primary", open)
	}
}

// TestDropCopyOfFills: before a grid that matches, a fill of an order that rests has a copy, and
// that a cancel is rejected has none. The session that gets copies enters no orders.
func TestDropCopyOfFills(t *testing.T) {
	g := testgrid.Matching(t)
	list := copies(nil, "A", "FIXT.1.1:B", "GONE")
	d := serve(t, g, func(c *service.Config) { c.Roster.DropCopies = list }, "A@IBM", "FIXT.1.1:B@IBM", "C@IBM", "RISK@IBM")
	a, b, c, risk := d.dial("A"), d.dial("FIXT.1.1:B"), d.dial("C"), d.dial("RISK")
	for _, p := range []*peer{a, b, c, risk} {
		if got := p.on(); !strings.Contains(got, "|35=A|34=1|") {
			t.Fatalf("Logon of %s: %q", p.name, got)
		}
	}
	risk.send("1", "112=x|")
	risk.wants("35=0", "34=2")
	a.send("D", "11=x|1=ACCT|55=IBM|54=2|60=NOW|38=100|40=2|44=125.10|")
	a.wants("150=0")
	risk.wants("35=8", "34=3", "150=0", "115=GRID", "128=A", "797=Y", "11=x", "1=ACCT", "44=125.10", "151=100")
	told(t, g)
	c.send("D", "11=y|55=IBM|54=1|60=NOW|38=60|40=2|44=125.20|") // a session without copies
	risk.wants("35=8", "34=4", "150=F", "39=1", "128=A", "797=Y", "11=x", "31=125.10", "32=60", "6=125.10", "14=60", "151=40")
	b.send("F", "11=z|41=none|55=IBM|54=2|60=NOW|38=100|")
	b.wants("35=9")
	b.send("D", "11=tick|55=IBM|54=2|60=NOW|38=1|40=2|44=125.11|")
	b.wants("150=8")
	risk.wants("35=8", "34=5", "150=8", "39=8", "128=B", "797=Y", "11=tick")
	a.send("q", "11=all|530=7|60=NOW|")
	risk.wants("35=8", "34=6", "150=4", "128=A", "797=Y", "11=x")
	risk.send("D", "11=mine|55=IBM|54=2|60=NOW|38=1|40=2|44=125.10|")
	if got := risk.wants("35=j", "34=7", "380=6", "372=D"); !strings.Contains(got, "The session gets drop copies") {
		t.Errorf("an order of the session: %q", got)
	}
}
