package recorder

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

const (
	deskTag, stampTag = 10001, 10002
	desk              = "DESK-7"
)

// calling are the arguments of nodes that have a check and a tag set before each order, stamp it, and
// make an audit trail of it on every copy.
func calling(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	named := func(flag, name string, module []byte, config, more string) []string {
		file := filepath.Join(dir, name)
		text := fmt.Sprintf("%s=%s.wasm:sha256=%x,fuel=1000000%s", name, file, sha256.Sum256(module), more)
		if err := os.WriteFile(file+".wasm", module, 0o600); err != nil {
			t.Fatal(err)
		}
		if config != "" {
			if err := os.WriteFile(file+".conf", []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			text += ",config=" + file + ".conf"
		}
		return []string{flag, text}
	}
	return slices.Concat(
		named("--function-pre", "fat-finger", examples.FatFinger, "quantity=1000000\n", ""),
		named("--function-pre", "enrich-client", examples.EnrichClient, "ACCT-00012345="+desk+"\n", fmt.Sprintf(",tags=%d", deskTag)),
		named("--function-post", "audit-trail", examples.AuditTrail, "", ""),
		named("--function-post", "count-accounts", examples.CountAccounts, "", ""),
		[]string{"--function-stamp", fmt.Sprint(stampTag)})
}

// inForce waits until every copy calls functions of kind Post.
func inForce(d *drill) {
	d.t.Helper()
	c := nodestatus.NewClient(time.Second, nil)
	for _, u := range d.grid.HTTP {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			n, err := nodestatus.Get(d.t.Context(), c, strings.TrimPrefix(u, "http://"))
			if err == nil && len(n.Posts) == 2 && n.Posts[0].Partitions == len(n.Partitions) {
				break
			}
			if time.Now().After(deadline) {
				d.t.Fatalf("%s: functions of kind Post are not in force: %+v, %v", u, n, err)
			}
		}
	}
}

// TestKillUnderFunctions: both processes are killed in turn while functions decide on each order
// and every copy records it. What they decided is what was acknowledged, and the audit trail is whole
// on all copies.
func TestKillUnderFunctions(t *testing.T) {
	d := start(t, setup{replicas: 2, args: calling(t), ready: inForce})
	d.calm()
	for i := range 2 {
		d.kill(i, i)
		d.over(i)
	}
	c := d.finish(api.Finish{Context: api.Context{Drill: "trading/functions", Suite: "pull-the-plug", StepsAsked: 2}})
	x := c.Functions
	if x == nil {
		t.Fatal("the certificate has no functions")
	}
	if c.Verdict != certificate.Pass || c.Ledger.Corrupt+c.Ledger.Misplaced+c.Ledger.Missing() != 0 || c.Ledger.Downstream == 0 {
		t.Errorf("%s: %q, ledger %+v", c.Verdict, c.Reasons, c.Ledger)
	}
	if !slices.Equal(x.Pre, []string{"fat-finger", "enrich-client"}) || !slices.Equal(x.Post, []string{"audit-trail", "count-accounts"}) || len(x.Chains) != 1 || x.Stamp != stampTag {
		t.Fatalf("functions %+v", x)
	}
	for _, v := range []certificate.SetValue{{Tag: deskTag, Value: desk, Orders: x.Decided}, {Tag: stampTag, Value: x.Chains[0][:16], Orders: x.Decided}} {
		if !slices.Contains(x.Values, v) || len(x.Values) != 2 {
			t.Errorf("set in the orders are %+v, want %+v", x.Values, v)
		}
	}
	if x.Decided < c.Orders.Acknowledged || x.Unstamped+x.Different+x.Missing+x.Broken+x.Failed != 0 || x.Copies != 2*len(c.Partitions) {
		t.Errorf("of %d acknowledged orders: %+v", c.Orders.Acknowledged, x)
	}
	// Two records of each order, one of them of the audit trail, whose first has none before it.
	if 2*x.Linked+2*int64(len(c.Partitions)) < x.Records || x.Records < 2*x.Decided || x.Control.Result != certificate.ControlPassed {
		t.Errorf("records: %+v", x)
	}
	text, err := os.ReadFile(filepath.Join(d.dir, certificate.TextFile))
	if err != nil || !strings.Contains(string(text), "10001="+desk) || !strings.Contains(string(text), "records of") {
		t.Errorf("the text, %v:\n%s", err, text)
	}
	seesWrongFunctions(t, d.dir)
}

// seesWrongFunctions: no certificate is given where an order was not decided, or a copy has other
// records.
func seesWrongFunctions(t *testing.T, dir string) {
	t.Helper()
	middle := func(h *history.History) (x *history.Recorded, at int) {
		x = &h.Functions.Records[len(h.Functions.Records)-1]
		at = len(x.Records) / 2
		for x.Records[at].Function != "audit-trail" {
			at++
		}
		return x, at
	}
	for name, c := range map[string]struct {
		change func(h *history.History)
		of     func(x *validate.Functions) int64
		more   string
	}{
		"an order without the stamp": {func(h *history.History) {
			d := &h.Functions.Decided[0]
			d.Values[len(d.Values)-1].Orders--
			d.Values = append(d.Values, history.SetValue{Tag: stampTag, Orders: 1})
		}, func(x *validate.Functions) int64 { return x.Unstamped }, "tag 10002"},
		"another chain": {func(h *history.History) { h.Functions.Chains[0] = strings.Repeat("0", 64) }, func(x *validate.Functions) int64 { return x.Unstamped }, "no chain that a node told of"},
		"a record is not there": {func(h *history.History) {
			x, at := middle(h)
			x.Records = slices.Delete(x.Records, at, at+1)
		}, func(x *validate.Functions) int64 { return min(x.Missing, x.Different) }, "has no record of audit-trail"},
		"a record is another one": {func(h *history.History) { x, at := middle(h); x.Records[at].Sum++ }, func(x *validate.Functions) int64 { return x.Different }, "or other ones"},
		"a record is not linked":  {func(h *history.History) { x, at := middle(h); x.Records[at].Link = history.Broken }, func(x *validate.Functions) int64 { return x.Broken }, "is not linked"},
	} {
		h, err := history.Load(filepath.Join(dir, certificate.HistoryFile))
		if err != nil {
			t.Fatal(err)
		}
		c.change(h)
		x := validate.TakeFunctions(h, 7)
		if c.of(x) == 0 || !strings.Contains(strings.Join(x.Words, "\n"), c.more) {
			t.Errorf("%s: %+v, want it found, with %q", name, x, c.more)
		}
		made, err := certificate.New(h, "")
		if err != nil || made.Verdict != certificate.Violated {
			t.Errorf("%s: verdict %v (%v), want Violated", name, made, err)
		}
	}
}
