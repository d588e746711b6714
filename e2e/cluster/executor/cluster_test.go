package executor

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor/conformance"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/local"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

// TestMain lets a machine that is switched on again run this binary as its
// first process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "supervise" {
		fmt.Fprintln(os.Stderr, local.Supervise(os.Stdin))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestOnCluster runs the protocol's own tests on the machines of this
// checkout's cluster: nodes lose their power and network, and the API server
// goes away, so it runs only when asked for: CLUSTER_EXECUTOR=1.
func TestOnCluster(t *testing.T) {
	if os.Getenv("CLUSTER_EXECUTOR") == "" {
		t.Skip("set CLUSTER_EXECUTOR=1 to break the machines of this checkout's cluster")
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	c, kind, err := cluster.FromEnvironment(t.Context(), cluster.Options{Root: root, Out: os.Stdout, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	machines, ok := c.(cluster.Inspectable)
	if !ok {
		t.Skipf("a %s cluster's machines are not ours to break: use CLUSTER=local", kind)
	}
	nodes, err := machines.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := nodes[len(nodes)-1:]
	dir := t.TempDir()
	s := serve(t, func() Options {
		return Options{Name: "test", Dir: dir, Token: "secret", Hands: []Hands{&Machines{Of: machines}},
			Say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	})
	conformance.Run(t, conformance.Target{
		URL: "http://" + s.addr, Token: "secret", Patience: 3 * time.Minute,
		Restart: func(t *testing.T) { s.t = t; s.stop(); s.start() },
		Faults: []executor.Fault{
			{Type: executor.NodePowerOff, Nodes: last},
			{Type: executor.NodeLinkDown, Nodes: last},
			{Type: executor.APIServerOutage},
		},
	})
}
