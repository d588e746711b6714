package downstream

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Sink is a process of grid-sink, or of another program that follows a grid. It ends with its test.
type Sink struct {
	t    testing.TB
	name string
	p    *process
	http string
	args []string
}

// RunSink starts grid-sink with these arguments.
func RunSink(t testing.TB, args ...string) *Sink {
	t.Helper()
	return Run(t, "grid-sink", args...)
}

// Run starts a program of cmd with these arguments.
func Run(t testing.TB, name string, args ...string) *Sink {
	t.Helper()
	s := &Sink{t: t, name: name, args: args}
	var err error
	if s.p, err = startProcess(testgrid.Program(t, name), args...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("%s %s:\n%s", name, strings.Join(args, " "), s.p.said.String())
		}
	})
	return s
}

// StartSink starts grid-sink for a sink of a grid; kind is its subcommand, args are those of the target.
func StartSink(t testing.TB, g *testgrid.Grid, kind, name string, args ...string) *Sink {
	t.Helper()
	address := proc.PortForTest(t)
	s := RunSink(t, append([]string{kind, "--endpoint", strings.Join(g.Endpoints, ","), "--grid", "dev", "--sink", name, "--http", address}, args...)...)
	s.http = address
	return s
}

// Kill ends the process without a chance to write anything.
func (s *Sink) Kill() { s.p.kill() }

// Stop asks the process to end, and fails the test if it does not end well.
func (s *Sink) Stop() {
	s.t.Helper()
	_ = s.p.cmd.Process.Signal(syscall.SIGTERM) // End tells how it ended
	s.End(0)
}

// End waits for the exit code and returns what was printed.
func (s *Sink) End(want int) string {
	s.t.Helper()
	<-s.p.exited
	if code := s.p.cmd.ProcessState.ExitCode(); code != want {
		s.t.Fatalf("%s %s: exit code %d, want %d:\n%s", s.name, strings.Join(s.args, " "), code, want, s.p.said.String())
	}
	return s.p.said.String()
}

// Status reads /status into out, a *sink.Status, once it is served.
func (s *Sink) Status(out any) {
	s.t.Helper()
	WaitFor(s.t, "the status of "+s.name, func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.http+"/status", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		return json.NewDecoder(resp.Body).Decode(out) == nil
	})
}

// killsEnv is how many primaries a test kills, instead of its usual number.
const killsEnv = "ORDERGRID_SINK_KILLS"

// Kills is how many primaries a test is to kill.
func Kills(t testing.TB, usual int) int {
	t.Helper()
	text := os.Getenv(killsEnv)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: value %q, allowed: a number from 1", killsEnv, text)
	}
	return n
}

// KillUnderLoad kills n primaries of a grid while orders come, those of the partitions in turn, each after so many more
// orders, and calls then with the number of the kill. It returns the ClOrdIDs of the orders that were acknowledged, and
// the last of them in each partition.
func KillUnderLoad(t testing.TB, c *client.Client, g *testgrid.Grid, n, orders int, then func(i int)) (map[wire.OrderID]string, map[wire.PartitionID]uint64) {
	t.Helper()
	return killUnder(t, c, g, StartLoad(t, c, 8), n, orders, then)
}

// KillUnderTrading is KillUnderLoad for a grid that matches, with StartTrading.
func KillUnderTrading(t testing.TB, c *client.Client, g *testgrid.Grid, n, orders int, then func(i int)) (map[wire.OrderID]string, map[wire.PartitionID]uint64) {
	t.Helper()
	return killUnder(t, c, g, StartTrading(t, c, 8), n, orders, then)
}

func killUnder(t testing.TB, c *client.Client, g *testgrid.Grid, load *Load, n, orders int, then func(i int)) (map[wire.OrderID]string, map[wire.PartitionID]uint64) {
	t.Helper()
	for i := range n {
		WaitForCopies(t, c)
		before := load.Count()
		WaitFor(t, strconv.Itoa(orders)+" orders", func() bool { return load.Count() > before+orders })
		KillPrimary(t, c, g, c.Table()[i%len(c.Table())].ID)
		then(i)
	}
	WaitForCopies(t, c)
	acked := load.Stop()
	last := map[wire.PartitionID]uint64{}
	for id := range acked {
		last[id.Partition] = max(last[id.Partition], id.Seq)
	}
	if len(last) != len(c.Table()) {
		t.Fatalf("orders were acknowledged in %d of %d partitions", len(last), len(c.Table()))
	}
	return acked, last
}
