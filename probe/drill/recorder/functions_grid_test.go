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

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/collect"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

const (
	deskTag, stampTag = 10001, 10002
	desk              = "DESK-7"
	maxFuel           = 1_000_000
)

// calling are the arguments of nodes that have a check and a tag set before each order, stamp it, and
// make an audit trail of it on every copy, with so much fuel.
func calling(t *testing.T, auditFuel int) []string {
	t.Helper()
	dir := t.TempDir()
	named := func(flag, name string, module []byte, fuel int, config, more string) []string {
		file := filepath.Join(dir, name)
		text := fmt.Sprintf("%s=%s.wasm:sha256=%x,fuel=%d%s", name, file, sha256.Sum256(module), fuel, more)
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
		named("--function-pre", "fat-finger", examples.FatFinger, maxFuel, "quantity=1000000\n", ""),
		named("--function-pre", "enrich-client", examples.EnrichClient, maxFuel, "ACCT-00012345="+desk+"\n", fmt.Sprintf(",tags=%d", deskTag)),
		named("--function-post", "audit-trail", examples.AuditTrail, auditFuel, "", ""),
		named("--function-post", "count-accounts", examples.CountAccounts, maxFuel, "", ""),
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
	d := start(t, setup{replicas: 2, args: calling(t, maxFuel), ready: inForce})
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

// TestAuditThatFails: no certificate is given where no call of the audit trail has a result.
func TestAuditThatFails(t *testing.T) {
	d := start(t, setup{replicas: 2, args: calling(t, 1000), ready: inForce})
	d.calm()
	c := d.finish(api.Finish{Context: api.Context{Drill: "trading/functions"}})
	x := c.Functions
	if x == nil || c.Verdict != certificate.Violated || x.Linked != 0 || x.Failed == 0 || x.Missing < 2*c.Orders.Acknowledged || x.Different+x.Broken != 0 {
		t.Errorf("%s: %q, functions %+v", c.Verdict, c.Reasons, x)
	}
	if text := strings.Join(c.Reasons, "\n"); !strings.Contains(text, "or one of a call that failed") {
		t.Errorf("reasons %q", text)
	}
	begun(d)
}

// begun reads the whole log of every copy: it has the change with which the functions began.
func begun(d *drill) {
	d.t.Helper()
	c, err := client.Dial(d.t.Context(), client.Config{Endpoints: d.grid.Endpoints})
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	post := []history.PostFunction{
		{Name: "audit-trail", SHA256: fmt.Sprintf("%x", sha256.Sum256(examples.AuditTrail))},
		{Name: "count-accounts", SHA256: fmt.Sprintf("%x", sha256.Sum256(examples.CountAccounts))},
	}
	h := &history.History{Functions: &history.Functions{Post: slices.Clone(post)}}
	if err := collect.All(d.t.Context(), c, nil, h); err != nil {
		d.t.Fatal(err)
	}
	for _, x := range h.Functions.Records {
		if x.Error != "" || len(x.Begun) != 1 || !slices.Equal(x.Begun[0].Post, post) || len(x.Records) == 0 || x.Begun[0].Entry >= x.Records[0].Entry {
			d.t.Errorf("%s: error %q, begun %+v, %d records", x.Where, x.Error, x.Begun, len(x.Records))
		}
	}
	if len(h.Functions.Records) < 2 {
		d.t.Errorf("%d copies were read", len(h.Functions.Records))
	}
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
		"a call of the audit trail failed on all copies": {func(h *history.History) {
			_, at := middle(h)
			p := h.Functions.Records[len(h.Functions.Records)-1].Partition
			for i := range h.Functions.Records {
				if x := &h.Functions.Records[i]; x.Partition == p {
					x.Records[at].Fault, x.Records[at].Link = "out of fuel", history.NoLink
				}
			}
		}, func(x *validate.Functions) int64 { return x.Missing }, "failed: out of fuel"},
		"the audit trail begins anew": {func(h *history.History) { x, at := middle(h); x.Records[at].Link = history.Anchor }, func(x *validate.Functions) int64 { return x.Broken }, "begins the trail anew"},
		"a record is not linked":      {func(h *history.History) { x, at := middle(h); x.Records[at].Link = history.Broken }, func(x *validate.Functions) int64 { return x.Broken }, "is not linked"},
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
