package cli

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/report"
)

// TestNegativeControl is the control of the whole chain, from the node to the exit code: a grid
// that acknowledges every 50th order and drops it. The number follows from the grid's
// configuration; the ledger has to find exactly those, on the primary and on the backup, and the
// run has to be Incorrect.
func TestNegativeControl(t *testing.T) {
	const every = 50
	faulty := testgrid.Program(t, "grid-node", "faulty")
	bad := exec.Command(faulty, "serve")
	bad.Env = []string{"ORDERGRID_FAULTY_DROP_EVERY=often"} // in a pod it is the only way to set it
	if out, err := bad.CombinedOutput(); err == nil || !strings.Contains(string(out), `$ORDERGRID_FAULTY_DROP_EVERY: value "often", allowed: a number`) {
		t.Errorf("%v: %s", err, out)
	}
	g := testgrid.Start(t, testgrid.Options{Program: faulty, MemoryMiB: 128, Args: []string{"--", "--faulty-drop-every", jsonInt(every)}})
	nodes := nodestatus.NewClient(5*time.Second, nil)
	dropped := func() (n int64) {
		for _, address := range g.HTTP {
			s, err := nodestatus.Get(t.Context(), nodes, strings.TrimPrefix(address, "http://"))
			if err != nil || s.Faulty == nil || s.Faulty.DropEvery != every {
				t.Fatalf("%+v, %v", s, err)
			}
			n += int64(s.Faulty.Dropped)
		}
		return n
	}
	code, out, stderr := call("run", "--scenario", "stac-pair", "--rates", "200,500", "--repeats", "1", "--warmup", "200ms", "--measure", "800ms",
		"--endpoint", strings.Join(g.Endpoints, ","), "--metrics", strings.Join(g.HTTP, ","), "--shared-cores", "--format", "json")
	if code != ExitIncorrect {
		t.Fatalf("exit code %d of a grid that loses orders\n%s", code, stderr)
	}
	var rep report.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	lost := int64(0)
	for _, p := range rep.Result.Probes {
		before := int64(0) // orders of earlier steps: the grid's count continues
		for _, s := range p.Steps {
			want := (before+s.Acked)/every - before/every
			if s.Acked != s.Created || want == 0 || s.Ledger.Lost != want || s.Backups.Lost != want {
				t.Errorf("probe %s step %d: %d orders acknowledged, %d of them dropped; the ledger sees %d lost by the primary's log, %d by the backup's",
					p.Name, s.Step, s.Acked, want, s.Ledger.Lost, s.Backups.Lost)
			}
			// Each got the receipt of another order; nothing else is wrong.
			if s.Ledger.Duplicates != want || s.Ledger.Gaps+s.Ledger.Misplaced+s.Ledger.Refused+s.Ledger.Corrupt+s.Ledger.ChainBreaks != 0 {
				t.Errorf("probe %s step %d: %+v", p.Name, s.Step, s.Ledger)
			}
			t.Logf("probe %s step %d: %d acknowledged, %d dropped, %d found lost", p.Name, s.Step, s.Acked, want, s.Ledger.Lost)
			before += s.Acked
			lost += s.Ledger.Lost
		}
	}
	if n := dropped(); n != lost || lost == 0 {
		t.Errorf("the nodes report %d dropped orders, the ledger finds %d lost", n, lost)
	}
	if rep.Verdict != report.ReportIncorrect || rep.Judgements[0].Name != "CORRECT" || rep.Judgements[0].Status != report.Fail {
		t.Errorf("%s: %s; %+v", rep.Verdict, rep.Reason, rep.Judgements[0])
	}
}

// TestReleaseCannotLoseOrders: the tests use a release build, which does not have the switch.
func TestReleaseCannotLoseOrders(t *testing.T) {
	out, err := exec.Command(testgrid.Program(t, "grid-node"), "serve", "--faulty-drop-every", "50").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "unknown flag: --faulty-drop-every") {
		t.Errorf("%v: %s", err, out)
	}
}
