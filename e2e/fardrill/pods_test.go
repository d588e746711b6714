//go:build e2e

package fardrill

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
)

// sinkOutageInPods is TestSinkOutage with grid and sink in pods: the database is killed while orders come, the sink's
// process, and a primary while the database is away. No figure of time decides.
func sinkOutageInPods(ctx context.Context, c *inPods) {
	const grid = "outage"
	server := database(ctx, c)
	c.grow(ctx, grid, "")
	config := recorder.Config{Endpoints: []string{c.service(ctx, grid)}, Grid: grid, Sinks: tables{server, 2}, Reads: 20, Orders: 10}
	for _, p := range c.pods(ctx, grid) {
		config.NodeHTTP = append(config.NodeHTTP, net.JoinHostPort(p.Status.PodIP, strconv.Itoa(api.HTTPPort)))
	}
	d := record(c.T, "sink-outage-cluster", config)
	must := func(err error) {
		if err != nil {
			c.Fatal(err)
		}
	}
	kill := func() string {
		must(server.Kill())
		return "the server of the database was killed; " + gone(c.T, net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	}
	back := func() { must(server.Start()) }

	d.step(fault{kind: "DatabaseKill", what: "kill -9 of the server of the database, away until the OrderGrid reports it",
		inject: func() string { seen := kill(); c.failing(ctx, grid); return seen }, recover: back})
	c.Condition(ctx, "ordergrid", grid, api.ConditionSinksReady, "True")
	d.step(fault{kind: "SinkKill", what: "kill -9 of grid-sink in its pod", inject: func() string { return c.killSink(ctx, grid) }, lasts: time.Second})
	pod := c.Must(c.Kube.Run(ctx, "get", "gridpartition", api.PartitionName(grid, 0), "-n", namespace, "-o", "jsonpath={.status.primary.podName}"))
	d.step(fault{kind: "ContainerKill", what: "kill -9 of the primary of p0 while the database is away", pods: []string{pod}, lasts: 2 * time.Second, recover: back,
		inject: func() string {
			seen := kill()
			_, killed := c.killPrimary(ctx, grid)
			return seen + "; " + killed
		}})
	certified(c.T, d, func(cert *certificate.Certificate) {
		if cert.Verdict == certificate.Violated || cert.Ledger.Downstream < cert.Orders.Acknowledged || cert.Ledger.Missing()+cert.Ledger.Duplicated+cert.Ledger.Gaps+cert.Ledger.OutOfOrder != 0 {
			c.Errorf("verdict %s, %d orders at the far side, %d acknowledged: %v", cert.Verdict, cert.Ledger.Downstream, cert.Orders.Acknowledged, cert.Reasons)
		}
	})
}

// database is a PostgreSQL server with TLS that pods reach, and its Secret.
func database(ctx context.Context, c *inPods) *downstream.Postgres {
	c.Helper()
	bin, err := downstream.FindPostgres()
	if err != nil {
		c.Fatal(err)
	}
	host := c.here(ctx)
	authority, err := pki.Load(c.TempDir(), "database")
	if err != nil {
		c.Fatal(err)
	}
	files, err := authority.Save(c.TempDir(), "server", pki.Identity{User: "server", Addrs: []netip.Addr{netip.MustParseAddr(host)}})
	if err != nil {
		c.Fatal(err)
	}
	server, err := downstream.NewPostgres(bin, downstream.PostgresOptions{Host: host, Cert: files.Cert, Key: files.Key})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(server.Remove)
	c.secret(ctx, "database", map[string]string{"url": server.URL(downstream.PostgresSuperuser, server.Password, downstream.PostgresSuperuser), "ca.crt": string(authority.PEM)})
	return server
}

// service is the address of a grid's Service, which this machine reaches.
func (c *inPods) service(ctx context.Context, grid string) string {
	c.Helper()
	return net.JoinHostPort(c.Must(c.Kube.Run(ctx, "get", "service", api.ClientServiceName(grid), "-n", namespace, "-o", "jsonpath={.spec.clusterIP}")), strconv.Itoa(api.DataPort))
}

// sinkKafkaInPods kills the sink's process, deletes its pod and kills a primary under orders, and wants each acknowledged
// order in the topic once.
func sinkKafkaInPods(ctx context.Context, c *inPods) {
	const grid = "bus"
	k, err := downstream.StartKafkaAt(ctx, c.TempDir(), c.here(ctx))
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(k.Stop)
	ca, err := os.ReadFile(k.CA)
	if err != nil {
		c.Fatal(err)
	}
	c.secret(ctx, "broker", map[string]string{"ca.crt": string(ca)})
	c.grow(ctx, grid, k.TLSAddress)
	to, err := client.Dial(ctx, client.Config{Endpoints: []string{c.service(ctx, grid)}, Grid: grid, DialTimeout: time.Minute, RequestTimeout: time.Minute})
	if err != nil {
		c.Fatal(err)
	}
	defer to.Close()
	load := downstream.StartLoad(c.T, to, 4)
	more := func(what string) {
		begin := load.Count()
		downstream.WaitFor(c.T, what+", and 500 orders more", func() bool { return load.Count() > begin+500 })
	}
	more("a sink that writes")
	c.Log(c.killSink(ctx, grid))
	more("grid-sink killed")
	c.Must(c.Kube.Run(ctx, "delete", "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid+","+api.LabelSink+"=orders,app.kubernetes.io/component=sink", "--wait"))
	more("its pod deleted")
	_, killed := c.killPrimary(ctx, grid)
	c.Log(killed)
	more("a primary killed")
	c.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
	c.Condition(ctx, "ordergrid", grid, api.ConditionSinksReady, "True")
	acked := map[string]int{}
	for _, id := range load.Stop() {
		acked[id] = 0
	}
	count := consume(ctx, c.T, k, grid+".orders", len(acked), func(id string) {
		if _, known := acked[id]; !known {
			c.Errorf("%s is in Kafka, and was not acknowledged", id)
		}
		acked[id]++
	})
	wrong := 0
	for id, n := range acked {
		if n != 1 {
			wrong++
			c.Logf("%s is in Kafka %d times", id, n)
		}
	}
	c.Logf("%d orders acknowledged, %d records in Kafka", len(acked), count)
	if wrong > 0 {
		c.Errorf("%d of %d orders are not in Kafka once", wrong, len(acked))
	}
}

// consume gives the keys of all committed records of a topic, until so many were there and none came for a while.
func consume(ctx context.Context, t testing.TB, k *downstream.Kafka, topic string, want int, each func(key string)) (count int) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Address), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for quiet := 0; quiet < 3 || count < want && quiet < 30; {
		poll, cancel := context.WithTimeout(ctx, 2*time.Second)
		f := cl.PollFetches(poll)
		cancel()
		before := count
		f.EachRecord(func(r *kgo.Record) { count++; each(string(r.Key)) })
		switch {
		case ctx.Err() != nil:
			t.Fatalf("%d of %d records: %v", count, want, ctx.Err())
		case count > before:
			quiet = 0
		default:
			quiet++ // a sink that is behind, or the end
		}
	}
	return count
}
