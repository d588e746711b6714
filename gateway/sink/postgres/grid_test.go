package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// killsEnv is how many primaries TestGridKilled kills, 3 when it is not set.
const killsEnv = "ORDERGRID_SINK_KILLS"

// TestGridKilled: primaries are killed under load, grid-sink and the server of the database in turn with them. Each order
// that was acknowledged is in its table once, under its number.
func TestGridKilled(t *testing.T) {
	kills := 3
	if s := os.Getenv(killsEnv); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	p := server(t, downstream.PostgresOptions{})
	url := file(t, p.Admin())
	runSink(t, "postgres", "migrate", "--url-file", url).end(t, 0)
	if again := runSink(t, "postgres", "migrate", "--url-file", url); !strings.Contains(again.end(t, 0), "nothing to do") {
		t.Errorf("migrated again: %s", again.said.String())
	}
	g := downstream.Grid(t, "--external-sink", "orders")
	c := downstream.Dial(t, g)
	begin := func() *sinkProcess {
		return runSink(t, "postgres", "--url-file", url, "--endpoint", strings.Join(g.Endpoints, ","), "--grid", "dev", "--sink", "orders", "--http", "")
	}
	s := begin()
	load := downstream.StartLoad(t, c, 8)
	for i := range kills {
		downstream.WaitForCopies(t, c)
		before := load.Count()
		downstream.WaitFor(t, "100 orders", func() bool { return load.Count() > before+100 })
		downstream.KillPrimary(t, c, g, c.Table()[i%len(c.Table())].ID)
		switch i % 3 {
		case 1:
			s.kill()
			s = begin()
		case 2:
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	downstream.WaitForCopies(t, c)
	acked := load.Stop()
	last := map[wire.PartitionID]uint64{}
	for id := range acked {
		last[id.Partition] = max(last[id.Partition], id.Seq)
	}
	for id, seq := range last {
		downstream.WaitFor(t, fmt.Sprintf("entry %d of %s", seq, id), func() bool {
			at, err := p.PSQL(t.Context(), fmt.Sprintf(`SELECT seq >= %d FROM ordergrid.fence WHERE "partition" = %d`, seq, id))
			return err == nil && at == "t"
		})
	}
	s.stop(t)
	out, err := p.PSQL(t.Context(), `SELECT "partition", seq, cl_ord_id FROM ordergrid.orders`)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out, "\n")
	found := map[wire.OrderID]string{}
	for _, row := range rows {
		cells := strings.Split(row, "|")
		part, _ := strconv.ParseUint(cells[0], 10, 16) // the column is a number
		seq, _ := strconv.ParseUint(cells[1], 10, 64)
		found[wire.OrderID{Partition: wire.PartitionID(part), Seq: seq}] = cells[2]
	}
	for id, clOrdID := range acked {
		if found[id] != clOrdID {
			t.Errorf("order %s was acknowledged as %s, and is in the table as %q", id, clOrdID, found[id])
		}
	}
	if len(rows) != len(found) || len(found) != len(acked) {
		t.Errorf("%d rows of %d orders, %d acknowledged", len(rows), len(found), len(acked))
	}
	for id := range last {
		sql := strings.NewReplacer("'trades'", "'dev'", `"partition" = 0`, fmt.Sprintf(`"partition" = %d`, id)).Replace(pageSQL(t, "dense"))
		if got, err := p.PSQL(t.Context(), sql); err != nil || !strings.HasPrefix(got, "1|") || !strings.HasSuffix(got, "|t|t") {
			t.Errorf("%s: %s (%v), want from entry 1 on, dense, each once", id, got, err)
		}
	}
	if got, err := p.PSQL(t.Context(), pageSQL(t, "lag")); err != nil || len(strings.Split(got, "\n")) != len(last) {
		t.Errorf("lag: %s (%v), want %d rows", got, err, len(last))
	}
	t.Logf("%d primaries killed, grid-sink %d times, the server %d times; %d orders acknowledged, %d rows", kills, (kills+1)/3, kills/3, len(acked), len(rows))
}

// sinkProcess is a process of grid-sink.
type sinkProcess struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan struct{}
}

func runSink(t *testing.T, args ...string) *sinkProcess {
	t.Helper()
	program, err := downstream.Program("grid-sink")
	if err != nil {
		t.Fatal(err)
	}
	s := &sinkProcess{cmd: exec.Command(program, args...), done: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // ProcessState has it
		close(s.done)
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("grid-sink %s:\n%s", strings.Join(args, " "), s.said.String())
		}
	})
	return s
}

func (s *sinkProcess) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.done
}

func (s *sinkProcess) stop(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // end tells how it ended
	s.end(t, 0)
}

// end waits for the exit code and returns what was printed.
func (s *sinkProcess) end(t *testing.T, want int) string {
	t.Helper()
	<-s.done
	if code := s.cmd.ProcessState.ExitCode(); code != want {
		t.Fatalf("%v ends with code %d, want %d: %s", s.cmd.Args, code, want, s.said.String())
	}
	return s.said.String()
}
