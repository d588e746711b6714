package fardrill

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
)

// outage is a grid whose orders go to PostgreSQL.
type outage struct {
	t      *testing.T
	server *downstream.Postgres
	url    string
	grid   *testgrid.Grid
	sink   *downstream.Sink
}

func (o *outage) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *outage) start() {
	o.t.Helper()
	o.sink = downstream.StartSink(o.t, o.grid, "postgres", "orders", "--url-file", o.url)
}

// killDatabase kills the server of the database, and says that nothing answers there.
func (o *outage) killDatabase() string {
	o.t.Helper()
	o.must(o.server.Kill())
	return "the server of the database was killed; " + gone(o.t, fmt.Sprintf("%s:%d", o.server.Host, o.server.Port))
}

// killPrimary kills the primary of a partition.
func (o *outage) killPrimary(address string) string {
	o.t.Helper()
	pid, err := o.grid.PIDOf(address)
	o.must(err)
	o.must(syscall.Kill(pid, syscall.SIGKILL))
	return fmt.Sprintf("process %d at %s was killed", pid, address)
}

// The database of a sink is killed while orders come, the sink's process, and a primary while the database is away. No
// order fails, and the certificate, which reads the tables themselves, has every order there once.
func TestSinkOutage(t *testing.T) {
	enabled(t)
	bin, err := downstream.FindPostgres()
	if err != nil {
		t.Fatal(err)
	}
	o := &outage{t: t, url: filepath.Join(t.TempDir(), "url")}
	if o.server, err = downstream.NewPostgres(bin, downstream.PostgresOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.server.Remove)
	o.must(os.WriteFile(o.url, []byte(o.server.Admin()+"\n"), 0o600))
	downstream.RunSink(t, "postgres", "migrate", "--url-file", o.url).End(0)
	o.grid = testgrid.Run(t, "--external-sink", "orders")
	o.start()
	d := begin(t, "sink-outage", o.grid, func(c *recorder.Config) { c.Sinks = tables{o.server, 2}; c.Reads, c.Orders = 50, 10 })
	back := func() { o.must(o.server.Start()) }

	d.step(fault{kind: "DatabaseKill", what: "kill -9 of the server of the database, away for 3 s", inject: o.killDatabase, lasts: 3 * time.Second, recover: back})
	d.step(fault{kind: "SinkKill", what: "kill -9 of grid-sink, away for 1 s", inject: func() string { o.sink.Kill(); return "grid-sink has ended" },
		lasts: time.Second, recover: o.start})
	c := downstream.Dial(t, o.grid)
	primary := c.Table()[0].Primary
	d.step(fault{kind: "PodKill", what: "kill -9 of the primary of p0 while the database is away", pods: []string{primary.ID[:len("dev-s0-0")]}, lasts: 2 * time.Second, recover: back,
		inject: func() string { return o.killDatabase() + "; " + o.killPrimary(primary.Address) }})

	certified(t, d, func(c *certificate.Certificate) {
		if c.Verdict != certificate.Pass || c.Ledger.Downstream < c.Orders.Acknowledged {
			t.Errorf("verdict %s, %d orders at the far side, %d acknowledged: %v", c.Verdict, c.Ledger.Downstream, c.Orders.Acknowledged, c.Reasons)
		}
	})
	// The reader of the far side has to see what is wrong there: an order taken out of its table is missing downstream.
	if _, err := o.server.PSQL(t.Context(), `DELETE FROM ordergrid.orders WHERE "partition" = 0 AND seq = (SELECT max(seq) - 5 FROM ordergrid.orders WHERE "partition" = 0)`); err != nil {
		t.Fatal(err)
	}
	again := begin(t, "sink-outage-control", o.grid, func(c *recorder.Config) { c.Sinks = tables{o.server, 2} })
	again.step(fault{kind: "Tampering", what: "an order of this drill is taken out of its table", inject: func() string {
		out, err := o.server.PSQL(t.Context(), `DELETE FROM ordergrid.orders WHERE ("partition", seq) IN (SELECT "partition", max(seq) - 5 FROM ordergrid.orders GROUP BY 1)`)
		o.must(err)
		return out
	}})
	certified(t, again, func(c *certificate.Certificate) {
		if c.Verdict != certificate.Violated || c.Ledger.MissingDownstream == 0 {
			t.Errorf("control: verdict %s, %d missing downstream, want Violated: the reader does not read the tables", c.Verdict, c.Ledger.MissingDownstream)
		}
	})
}

// certified ends a drill and checks what is in every certificate.
func certified(t *testing.T, d *drill, check func(*certificate.Certificate)) {
	t.Helper()
	c := d.finish()
	if c.Control.Result != certificate.ControlPassed {
		t.Errorf("the negative control failed: %+v", c.Control)
	}
	if len(c.Steps) != d.steps || c.Orders.Acknowledged == 0 {
		t.Errorf("%d steps, %d orders acknowledged", len(c.Steps), c.Orders.Acknowledged)
	}
	check(c)
}
