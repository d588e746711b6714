package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/fix/service"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/golden"
)

// desk is a Service before a grid of real processes.
type desk struct {
	*testing.T
	*service.Service
	dir  string
	stop func() // ends Run, and waits for its end
}

func serve(t *testing.T, g *testgrid.Grid, change func(*service.Config), names ...string) *desk {
	t.Helper()
	d := &desk{T: t, dir: t.TempDir()}
	d.password("bank", "right")
	d.sessions(names...)
	cfg := service.Config{Client: downstream.Dial(t, g), Listen: []string{"127.0.0.1:0"}, Sessions: filepath.Join(d.dir, "sessions.json"), Reread: 20 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	var err error
	if d.Service, err = service.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := d.Service.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	d.stop = func() { cancel(); run.Wait() }
	t.Cleanup(d.stop)
	return d
}

// sessions writes the file: each session has the password, a segment behind an @, and mode/grace
// of its cancels on disconnect behind a #. It is of FIX 4.4, or of the version before a colon.
func (d *desk) sessions(names ...string) {
	d.Helper()
	list := []roster.Entry{}
	for _, n := range names {
		n, cancels, has := strings.Cut(n, "#")
		var cancel *roster.Cancel
		if mode, grace, _ := strings.Cut(cancels, "/"); has {
			cancel = &roster.Cancel{Mode: mode, Grace: grace}
		}
		name, segment, _ := strings.Cut(n, "@")
		version, name := versionOf(name)
		list = append(list, roster.Entry{CancelOnDisconnect: cancel, Version: version, Segment: segment, SenderCompID: name, TargetCompID: "GRID", Username: "u", PasswordFile: "bank"})
	}
	text, err := json.Marshal(map[string]any{"sessions": list})
	if err != nil {
		d.Fatal(err)
	}
	d.write("sessions.json", string(text))
}

// versionOf splits the name of a session.
func versionOf(session string) (version, name string) {
	if version, name, has := strings.Cut(session, ":"); has {
		return version, name
	}
	return "FIX.4.4", session
}

func (d *desk) password(name, text string) { d.Helper(); d.write(name, text+"\n") }

// write replaces a file at once, as the kubelet does.
func (d *desk) write(name, text string) {
	d.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) status() *service.Status { return d.Status().(*service.Status) }

// until polls; the limit only turns a hang into a failure.
func (d *desk) until(what string, is func(*service.Status) bool) {
	d.Helper()
	for range 3000 {
		if is(d.status()) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.Fatalf("not after 30 s: %s; %+v", what, d.status())
}

// peer is a counterparty.
type peer struct {
	*testing.T
	c    net.Conn
	in   *bufio.Reader
	name string
	seq  int

	version string
}

func (d *desk) dial(name string) *peer {
	d.Helper()
	c, err := net.Dial("tcp", d.Addrs()[0])
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	version, name := versionOf(name)
	return &peer{d.T, c, bufio.NewReader(c), name, 0, version}
}

// logon begins a session anew; reports what came, "" for the end of the connection.
func (d *desk) logon(name, password string) (*peer, string) {
	d.Helper()
	p := d.dial(name)
	p.send("A", "98=0|108=30|141=Y|553=u|554="+password+"|")
	return p, p.receive()
}

func (p *peer) send(msgType, fields string) {
	p.Helper()
	p.seq++
	if p.version == "FIXT.1.1" { // every other message has its version
		if msgType == "A" {
			fields += "1137=9|"
		} else if p.seq%2 == 0 {
			fields = "1128=9|" + fields
		}
	}
	if _, err := p.c.Write(fixMessage(p.version, p.name, msgType, p.seq, fields)); err != nil {
		p.Fatal(err)
	}
}

// fixMessage makes a message of a counterparty.
func fixMessage(version, name, msgType string, seq int, fields string) []byte {
	at := time.Now().UTC().Format("20060102-15:04:05.000")
	body := strings.ReplaceAll(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=GRID|%s", msgType, seq, name, at, strings.ReplaceAll(fields, "NOW", at)), "|", "\x01")
	m := fmt.Appendf(nil, "8=%s\x019=%d\x01%s", version, len(body), body)
	return fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))
}

// order sends one.
func (p *peer) order(id string) {
	p.Helper()
	p.send("D", "11="+id+"|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|")
}

// receive returns the next message with | for SOH, "" at the end of the connection.
func (p *peer) receive() (got string) {
	p.Helper()
	for !strings.Contains(got, "|10=") {
		field, err := p.in.ReadString(1)
		if err == io.EOF && got == "" {
			return ""
		}
		if err != nil {
			p.Fatalf("after %q: %v", got, err)
		}
		got += strings.TrimSuffix(field, "\x01") + "|"
	}
	return got
}

func (p *peer) want(text string) {
	p.Helper()
	if got := p.receive(); !strings.Contains(got, text) {
		p.Errorf("got %q, want %q", got, text)
	}
}

// The tests have one grid, which their services do not share a session with.
func TestService(t *testing.T) {
	g := testgrid.Run(t)
	t.Run("files are read again", func(t *testing.T) { filesAreReadAgain(t, g) })
	t.Run("refused logons", func(t *testing.T) { refusedLogons(t, g) })
	t.Run("continued", func(t *testing.T) { continued(t, g, "G") })
	t.Run("continued, FIX 5.0 SP2", func(t *testing.T) { continued(t, g, "FIXT.1.1:G") })
	t.Run("second connection", func(t *testing.T) { secondConnection(t, g) })
	t.Run("lapses are refused", func(t *testing.T) { lapsesAreRefused(t, g) })
	t.Run("drain", func(t *testing.T) { drain(t, g) })
	t.Run("metrics", func(t *testing.T) { metrics(t, g) })
	t.Run("grid away", func(t *testing.T) { gridAway(t, g) })
}

// A password and a session count from when their file has changed; what is wrong changes nothing; who is not in the file
// any more is logged out.
func filesAreReadAgain(t *testing.T, g *testgrid.Grid) {
	d := serve(t, g, nil, "A", "B")
	a, got := d.logon("A", "right")
	if !strings.Contains(got, "|35=A|") {
		t.Fatalf("logon of A: %q", got)
	}
	d.password("bank", "other")
	d.until("the new password counts", func(*service.Status) bool { _, got := d.logon("B", "other"); return strings.Contains(got, "|35=A|") })
	if _, got := d.logon("C", "other"); got != "" {
		t.Errorf("logon of C, which there is not: %q", got)
	}
	d.sessions("A", "B", "C")
	d.until("C is there", func(s *service.Status) bool { return s.Configured == 3 })
	if _, got := d.logon("C", "other"); !strings.Contains(got, "|35=A|") {
		t.Errorf("logon of C: %q", got)
	}
	d.write("sessions.json", `{"sessions": [{"version": "FIX.9"}]}`)
	d.until("the file is wrong", func(s *service.Status) bool { return strings.Contains(s.FileError, `version is "FIX.9"`) })
	a.order("still-here")
	a.want("|39=0|")
	d.sessions("B", "C")
	a.want("|35=5|")
	d.until("the file is right, and A is gone", func(s *service.Status) bool { return s.FileError == "" && s.Configured == 2 })
	if err := os.Chmod(filepath.Join(d.dir, "bank"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.until("the password can be read by others", func(s *service.Status) bool {
		return strings.Contains(s.FileError, "has mode 0644, allowed: none for others")
	})
}

// What is refused is counted by reason, with its session and text; beyond MaxSessions logons are refused.
func refusedLogons(t *testing.T, g *testgrid.Grid) {
	d := serve(t, g, func(c *service.Config) { c.MaxSessions = 1 }, "A", "B")
	if _, got := d.logon("A", "wrong"); got != "" {
		t.Errorf("with a wrong password: %q", got)
	}
	if _, got := d.logon("STRANGER", "right"); got != "" {
		t.Errorf("of unknown CompIDs: %q", got)
	}
	if _, err := d.dial("A").c.Write([]byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 40<<10))); err != nil {
		t.Fatal(err)
	}
	if _, got := d.logon("A", "right"); !strings.Contains(got, "|35=A|") {
		t.Fatalf("logon of A: %q", got)
	}
	if _, got := d.logon("A", "right"); got != "" {
		t.Errorf("a second connection of A: %q", got)
	}
	if _, got := d.logon("B", "right"); got != "" {
		t.Errorf("one more than allowed: %q", got)
	}
	_ = d.dial("A").c.Close() // a health check
	d.until("each is in status", func(s *service.Status) bool { return len(s.Refused) == 5 })
	for _, r := range d.status().Refused {
		want, known := map[fix.LogonReason][2]string{
			"Credentials": {"FIX.4.4:A->GRID", "tags 553 (Username) and 554"}, "UnknownSession": {"", `"STRANGER"`}, "Garbled": {"", "allowed: a Logon"},
			"InUse": {"FIX.4.4:A->GRID", "has a connection"}, "Full": {"FIX.4.4:B->GRID", "1 sessions are logged on, allowed: 1"},
		}[r.Reason]
		if !known || r.Count != 1 || r.Session != want[0] || !strings.Contains(r.Text, want[1]) || strings.Contains(r.Text, "right") {
			t.Errorf("%+v, want session %q, %q", r, want[0], want[1])
		}
	}
}

// When the process ends, a session is logged out with the reason, after its orders were reported; new ones are refused.
func drain(t *testing.T, g *testgrid.Grid) {
	d := serve(t, g, nil, "A", "B")
	a, _ := d.logon("A", "right")
	const orders = 200
	for i := range orders {
		a.order(fmt.Sprint("drain-", i))
	}
	a.want("|39=0|") // the others are under way
	done := make(chan struct{})
	go func() { d.stop(); close(done) }()
	reports := 1
	got := a.receive()
	for ; strings.Contains(got, "|35=8|"); got = a.receive() {
		reports++
	}
	if !strings.Contains(got, "|58=this gateway stops; log on again|") || reports < 2 {
		t.Errorf("after %d reports: %q, want a Logout with the reason", reports, got)
	}
	if ready := d.NotReady(); len(ready) == 0 || !strings.Contains(ready[0], "sessions are logged out") {
		t.Errorf("while it drains it is not ready for: %q", ready)
	}
	if _, got := d.logon("B", "right"); got != "" {
		t.Errorf("a logon while it drains: %q", got)
	}
	a.send("5", "")
	<-done
	if got := a.receive(); got != "" {
		t.Errorf("after the Logout: %q", got)
	}
}

// The metrics are those of the page, and count what happens.
func metrics(t *testing.T, g *testgrid.Grid) {
	d := serve(t, g, nil, "A")
	reg := prometheus.NewRegistry()
	reg.MustRegister(d)
	golden.Metrics(t, "../../../docs/metrics.md", reg, func(name string) bool {
		return strings.HasPrefix(name, "ordergrid_gateway_") && !strings.HasPrefix(name, "ordergrid_gateway_sql_")
	})
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	a, _ := d.logon("A", "right")
	for i := range 3 {
		a.order(fmt.Sprint("metric-", i))
		a.want("|39=0|")
	}
	a.order("metric-0")
	a.want("|39=8|")
	d.until("the grid was asked", func(s *service.Status) bool { return len(s.Grid) == 0 })
	for name, want := range map[string]float64{
		`fix_messages_total direction=in type=D`: 4, `fix_messages_total direction=out type=8`: 4, `fix_messages_total direction=in type=A`: 1, `fix_sessions`: 1,
		`fix_logons_total`: 1, `fix_sessions_configured`: 1, `fix_orders_in_flight`: 0, `grid_partitions_unreachable`: 0,
		`fix_order_seconds fate=accepted`: 3, `fix_order_seconds fate=refused`: 1, `fix_connections state=session`: 1,
	} {
		if got := valueOf(t, reg, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// A grid that is away is reported within seconds, and that it is there again.
func gridAway(t *testing.T, g *testgrid.Grid) {
	roads := downstream.NewRoads(t.Context(), 0, 0)
	d := serve(t, g, func(c *service.Config) { c.Client = downstream.DialOver(t, g, roads) }, "A")
	d.until("the grid is reached", func(s *service.Status) bool { return len(s.Grid) == 0 })
	roads.Cut()
	d.until("it is away", func(s *service.Status) bool { return len(s.Grid) > 0 && len(d.NotReady()) > 0 })
	roads.Mend()
	d.until("it is there again", func(s *service.Status) bool { return len(s.Grid) == 0 && len(d.NotReady()) == 0 })
}

// valueOf is the value of a series, or the count of a histogram: its name and labels, separated by spaces.
func valueOf(t *testing.T, g prometheus.Gatherer, series string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(series)
	for _, f := range families {
		if f.GetName() != "ordergrid_gateway_"+words[0] {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := []string{}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if strings.Join(labels, " ") == strings.Join(words[1:], " ") {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	t.Errorf("no series %s", series)
	return -1
}
