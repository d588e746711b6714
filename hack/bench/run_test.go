package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/results"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// tiny makes a run of a few hundred milliseconds.
// answered is long enough for an order to be answered in it, beside everything else
// that the machine does while tests run: a window without one is an error.
const answered = "500ms"

func tiny(t *testing.T, more ...string) (rows []results.Row, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the user of PostgreSQL has to enter it
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	args := append([]string{"--rounds", "1", "--warmup", "20ms", "--duration", answered, "--gate", "off", "--out", filepath.Join(dir, "out")}, more...)
	var out bytes.Buffer
	// A busy machine is no failure here: figures are not tested.
	if err := command(t.Context(), args, &out); err != nil && !errors.Is(err, errEnvironment) {
		t.Fatalf("%v\n%s", err, &out)
	}
	rows, err := results.ReadJSON(filepath.Join(dir, "out", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "ordergrid-bench-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left := descendants(os.Getpid()); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	return rows, out.String()
}

// Growth cases become tables and plots, markdown quotes the run.
func TestGrowthAndMarkdown(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var out bytes.Buffer
	err := command(t.Context(), []string{"growth", "--cases", "^growth/connections-0[12]$", "--systems", "floor-go", "--warmup", "20ms", "--duration", answered, "--gate", "off", "--out", dir}, &out)
	if err != nil && !errors.Is(err, errEnvironment) {
		t.Fatalf("%v\n%s", err, &out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "growth-connections.svg")); err != nil || !bytes.Contains(b, []byte("floor-go")) {
		t.Errorf("plot: %v\n%s", err, b)
	}
	if !strings.Contains(out.String(), "| 2 | floor-go") {
		t.Errorf("no table:\n%s", &out)
	}
	out.Reset()
	if err := command(t.Context(), []string{"markdown", filepath.Join(dir, "bench.json")}, &out); err != nil || !strings.Contains(out.String(), "--cases '^growth/connections-0[12]$'") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// All shapes of load run against a floor, and the floor's ratio is to itself.
func TestShapes(t *testing.T) {
	rows, text := tiny(t, "--cases", "^lo/(repl|single)/", "--systems", "floor-go")
	if len(rows) != 18 { // ten loads, two of which are of two copies only
		t.Fatalf("%d rows\n%s", len(rows), text)
	}
	for _, r := range rows {
		if r.Rounds != 1 || r.Samples == 0 || r.P50 <= 0 || r.OrdersPerS <= 0 {
			t.Errorf("%s: %+v\n%s", r.Case, r, text)
		}
		if r.RatioToFloor == nil || *r.RatioToFloor != 1 || r.Floor != "floor-go" {
			t.Errorf("%s: ratio %v to %q", r.Case, r.RatioToFloor, r.Floor)
		}
		if open := strings.Contains(r.Case, "/rate-"); open != (r.CreateToEnd != nil) {
			t.Errorf("%s: create-to-end %+v", r.Case, r.CreateToEnd)
		}
	}
}

// The grid runs with real processes, on loopback and in network namespaces.
func TestGrid(t *testing.T) {
	networks := "lo"
	if m := system.Missing(); m == "" {
		networks = "(lo|ns)"
	} else {
		t.Log(m)
	}
	rows, text := tiny(t, "--cases", "^("+networks+"/repl/(pingpong|pipe-64x4|get-leased)|(tls|journal|match)/pingpong)$", "--systems", "^grid|floor-c$", "--duration", "300ms",
		"--node-flags", "--lease 20s --grace 30s") // a machine on which nothing moves for a while is no failure either
	grid := 0
	for _, r := range rows {
		if r.System == "grid" && r.Samples > 0 && r.CPU > 0 {
			grid++
		}
	}
	if want := 3 + 3*(1+strings.Count(networks, "|")); grid != want {
		t.Fatalf("%d rows of the grid, want %d\n%s", grid, want, text)
	}
	if !slices.ContainsFunc(rows, func(r results.Row) bool { // of the case that shows what TLS costs
		return r.System == "grid-tls" && r.Case == "tls/pingpong" && r.Samples > 0 && r.PrimaryCPU > 0 && r.GoHeap > 0
	}) {
		t.Errorf("no figure of TLS\n%s", text)
	}
	if !slices.ContainsFunc(rows, func(r results.Row) bool { return r.System == "grid-journal" && r.Samples > 0 && r.PrimaryCPU > 0 }) {
		t.Errorf("no figure of a journal\n%s", text)
	}
	for _, system := range []string{"grid-match", "grid-match-told"} {
		if !slices.ContainsFunc(rows, func(r results.Row) bool { return r.System == system && r.Samples > 0 && r.PrimaryCPU > 0 }) {
			t.Errorf("no figure of %s\n%s", system, text)
		}
	}
	for _, of := range []string{"floor", "grid"} {
		if !strings.Contains(text, "p99 : "+of) {
			t.Errorf("no table with ratios to %s in\n%s", of, text)
		}
	}
}

// Sinks of every kind write while orders are measured: a round in which one wrote none fails.
func TestSinks(t *testing.T) {
	if os.Getenv("ORDERGRID_BENCH_SINKS") == "" {
		t.Skip("set ORDERGRID_BENCH_SINKS=1 to start Kafka and PostgreSQL; make sinks-check does")
	}
	rows, text := tiny(t, "--cases", "^sinks/", "--systems", "^grid")
	if len(rows) != 2 || rows[0].System != "grid" || rows[1].System != "grid-sinks" {
		t.Fatalf("%d rows\n%s", len(rows), text)
	}
	for _, r := range rows {
		if r.Samples == 0 || r.PrimaryCPU <= 0 {
			t.Errorf("%s: %+v\n%s", r.System, r, text)
		}
	}
}

// Every peer that Maven can install takes every load that is compared.
func TestPeers(t *testing.T) {
	asked, err := peers.Choose(peers.All, "")
	if err != nil {
		t.Fatal(err)
	}
	if m := asked[0].Missing(); m != "" || os.Getenv("ORDERGRID_PEERS") == "" {
		t.Skipf("set ORDERGRID_PEERS=1 to have Maven install the peers: %s", m)
	}
	rows, text := tiny(t, "--peers", peers.All, "--peers-warmup", "1s", "--duration", "1s", "--systems", "^(hazelcast|coherence|geode|ignite)$")
	if len(rows) != 4*len(asked) {
		t.Fatalf("%d rows\n%s", len(rows), text)
	}
	for _, r := range rows {
		if r.Samples == 0 || r.P50 <= 0 || r.ClientCPU <= 0 || r.PrimaryCPU <= 0 || r.BackupCPU <= 0 || r.GeneratorCPU <= 0 {
			t.Errorf("%s %s: %+v\n%s", r.Case, r.System, r, text)
		}
		if open := strings.Contains(r.Case, "/rate-"); open != (r.CreateToEnd != nil) {
			t.Errorf("%s %s: create-to-end %+v", r.Case, r.System, r.CreateToEnd)
		}
	}
	if !strings.Contains(text, "| ignite | ") {
		t.Errorf("no table\n%s", text)
	}
}

// Rounds that do not count are repeated, then the case is INVALID and the exit
// status reports it; figures are not shown.
func TestBusyMachine(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	err := command(t.Context(), []string{"--cases", "^lo/single/pingpong$", "--systems", "floor-go", "--rounds", "1", "--repeats", "1", "--warmup", "0s", "--duration", "30ms",
		"--patience", "1ms", "--max-foreign", "-1", "--out", dir}, &out)
	if code := exitCode(err); code != exitEnvironment {
		t.Fatalf("exit status %d (%v), want %d\n%s", code, err, exitEnvironment, &out)
	}
	rows, err := results.ReadJSON(filepath.Join(dir, "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	if r := rows[0]; len(rows) != 1 || r.Valid || r.Rounds != 0 || r.Bad < 1 || r.Invalid == "" || r.P50 != 0 {
		t.Errorf("%+v", rows)
	}
	if !strings.Contains(out.String(), "floor-go  INVALID") {
		t.Errorf("the table does not report it:\n%s", &out)
	}
}

// Ctrl-C stops everything in order; a kill leaves no process either.
func TestNothingIsLeftBehind(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			network := "lo"
			if system.Missing() == "" {
				network = "ns"
			}
			cmd := exec.Command(os.Args[0], "--cases", "^"+network+"/repl/pingpong", "--systems", "floor-go", "--gate", "off", "--duration", "1m", "--out", filepath.Join(dir, "out"))
			cmd.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+dir)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			children := awaitLoad(t, cmd.Process.Pid, &said)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			for _, pid := range children {
				awaitEnd(t, pid)
			}
			if sig == syscall.SIGKILL {
				return // the directory cannot be removed then
			}
			if code := cmd.ProcessState.ExitCode(); code != exitFailed {
				t.Errorf("exit status %d (%v), want %d\n%s", code, err, exitFailed, &said)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "ordergrid-bench-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// awaitLoad waits until the generator runs and returns all processes.
func awaitLoad(t *testing.T, pid int, said fmt.Stringer) []int {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		all := descendants(pid)
		for _, p := range all {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p)) // it may have ended
			if bytes.Contains(b, []byte("\x00generate\x00")) {
				return all
			}
		}
	}
	t.Fatalf("no generator was started: %s", said)
	return nil
}

func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(b, []byte(") Z ")) { // gone, or a zombie
			return
		}
	}
	t.Errorf("process %d is left", pid)
}

// descendants of a process, zombies excluded.
func descendants(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread may have ended
		sc := bufio.NewScanner(bytes.NewReader(b))
		sc.Split(bufio.ScanWords)
		for sc.Scan() {
			if p, err := strconv.Atoi(sc.Text()); err == nil {
				all = append(append(all, p), descendants(p)...)
			}
		}
	}
	return all
}

func TestUsageErrorsNameTheFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rounds", "2"}, "--rounds: value 2, allowed: an odd number"},
		{[]string{"--gate", "maybe"}, `--gate: value "maybe", allowed: on, off`},
		{[]string{"--duration", "1ms"}, "--duration: value 1ms"},
		{[]string{"--cases", "nosuch"}, `CASES: value "nosuch" matches no case`},
		{[]string{"--cases", "("}, `CASES: value "(", allowed: a regular expression`},
		{[]string{"--systems", "("}, `--systems: value "("`},
		{[]string{"--systems", "nosuch", "--cases", "pingpong"}, `--systems: value "nosuch" leaves no system`},
		{[]string{"--client-io", "magic"}, `--client-io: client: IO is "magic"`},
		{[]string{"--redis", "/nosuch/redis-server"}, "--redis: value"},
		{[]string{"--peers", "infinispan"}, `--peers: value "infinispan", allowed: all, or some of hazelcast`},
		{[]string{"--peers-warmup", "-1s"}, "--peers-warmup: value -1s"},
		{[]string{"frobnicate"}, `"frobnicate": allowed: flags, or one of list, compare`},
		{[]string{"compare", "one.json"}, "compare takes two files, got 1"},
		{[]string{"compare", "/nosuch/a.json", "b.json"}, "/nosuch/a.json"},
		{[]string{"markdown", "a.json", "b.json"}, "markdown takes one file, got 2"},
		{[]string{"markdown", "/nosuch/bench.json"}, "/nosuch/bench.json"},
		{[]string{"growth", "--from", "/nosuch/bench.json"}, "/nosuch/bench.json"},
		{[]string{"profile", "--cases", "^lo/"}, "matches 18 cases, allowed: one"},
		{[]string{"query", "--orders", "10"}, "--orders: value 10, allowed: 1000 to 100000000"},
		{[]string{"query", "--systems", "("}, `--systems: value "("`},
		{[]string{"query", "--systems", "nosuch"}, `--systems: value "nosuch" leaves no system`},
		{[]string{"query", "--gate", "maybe"}, `--gate: value "maybe", allowed: on, off`},
		{[]string{"query", "--heap", "1"}, "--heap: value 1, allowed: 256 or more"},
		{[]string{"query", "--duration", "-1s"}, "--duration: value -1s"},
		{[]string{"query", "--redis", "/nosuch/redis-server"}, "--redis: value"},
		{[]string{"query", "now"}, `"now": allowed: flags`},
	} {
		err := command(t.Context(), c.args, new(bytes.Buffer))
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want a usage error with %q", c.args, err, c.want)
		}
		if code := exitCode(err); code != exitUsage {
			t.Errorf("%v: exit status %d", c.args, code)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"profile", "--help"}, {"compare", "--help"}, {"list", "--help"}, {"growth", "--help"}, {"outage", "--help"}, {"query", "--help"}} {
		var out bytes.Buffer
		if err := command(t.Context(), args, &out); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		if !strings.Contains(out.String(), "-cases") && !strings.Contains(out.String(), "BEFORE.json") && !strings.Contains(out.String(), "-orders") {
			t.Errorf("%v says only %q", args, &out)
		}
	}
}

// A partition moves between two pairs of real nodes under load, and no order fails.
func TestMove(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	// A busy machine is no failure here either.
	switch err := command(t.Context(), []string{"move", "--cases", "^growth/held-10k-rate-6000$", "--warmup", "100ms", "--duration", "20s"}, &out); {
	case errors.Is(err, rounds.ErrMoveLong):
		t.Skipf("%v\n%s", err, &out)
	case err != nil && !errors.Is(err, errEnvironment):
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"MiB/s copied", "before the move", "while it moves"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the output\n%s", want, &out)
		}
	}
	if left := descendants(os.Getpid()); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if err := command(t.Context(), []string{"move", "--cases", "^lo/repl/pingpong$"}, &out); !errors.Is(err, errUsage) {
		t.Errorf("a case that holds nothing: %v", err)
	}
}

// The primary of each grid is killed under load, and no order fails.
func TestOutage(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	// A busy machine is no failure here either.
	if err := command(t.Context(), []string{"outage", "--rounds", "1", "--warmup", "100ms", "--gate", "off"}, &out); err != nil && !errors.Is(err, errEnvironment) {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"round 1/1 grid: no answer for ", "round 1/1 grid-match: no answer for ", "rounds that count"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the output\n%s", want, &out)
		}
	}
	if left := descendants(os.Getpid()); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if err := command(t.Context(), []string{"outage", "--cases", "^lo/repl/pingpong$"}, &out); !errors.Is(err, errUsage) {
		t.Errorf("a case without a rate: %v", err)
	}
}

func TestIdle(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := command(t.Context(), []string{"idle", "--rounds", "1", "--warmup", "10ms", "--duration", "500ms"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if text := out.String(); !strings.Contains(text, "to the first") || !strings.Contains(text, "\n          64 ") {
		t.Errorf("no table\n%s", text)
	}
}
