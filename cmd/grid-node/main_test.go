package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/dev"
	"github.com/ordergrid/ordergrid/internal/command"
)

// The test binary is the program itself when this is set: tests run real
// processes, and so does the dev grid, which starts its own executable.
const asProgram = "GRID_NODE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// call runs the program to its end.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// devGrid is a running `grid-node dev`.
type devGrid struct {
	t    *testing.T
	cmd  *exec.Cmd
	info dev.Info
	errs bytes.Buffer
}

func startDev(t *testing.T, args ...string) *devGrid {
	t.Helper()
	g := &devGrid{t: t, cmd: program(append([]string{"dev", "--json", "--port", "0", "--http-port", "0"}, args...)...)}
	g.cmd.Stderr = &g.errs
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.cmd.Process.Kill(); _ = g.cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &g.info) != nil {
		_ = g.cmd.Process.Kill()
		_ = g.cmd.Wait()
		t.Fatalf("dev printed %q, %v\n%s", line, err, g.errs.String())
	}
	return g
}

func (g *devGrid) endpoint() string { return strings.Join(g.info.Endpoints, ",") }

func (g *devGrid) must(args ...string) string {
	g.t.Helper()
	code, out, errs := call(g.t, "", append(args, "--endpoint", g.endpoint(), "--timeout", "20s")...)
	if code != 0 {
		g.t.Fatalf("%v: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// until polls; the limit only turns a hang into a failure.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 3000 {
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not after 30 s: %s", what)
}

func (g *devGrid) ready(i int) bool {
	resp, err := http.Get(g.info.HTTP[i] + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func TestFirstOrder(t *testing.T) {
	sink := t.TempDir()
	g := startDev(t, "--sink", "file", "--dir", sink)
	if out := g.must("submit", "--clordid", "first-order"); !strings.Contains(out, "copies 2") {
		t.Fatalf("receipt: %s", out)
	}
	if out := g.must("get", "--clordid", "first-order"); !strings.Contains(out, "|11=first-order|") {
		t.Fatalf("order: %s", out)
	}
	if code, _, errs := call(t, "", "submit", "--clordid", "first-order", "--endpoint", g.endpoint()); code != 1 || !strings.Contains(errs, "DuplicateClOrdID") {
		t.Fatalf("twice: exit %d, %s", code, errs)
	}
	if code, _, errs := call(t, "", "get", "--clordid", "unknown", "--endpoint", g.endpoint()); code != 1 || !strings.Contains(errs, "not found") {
		t.Fatalf("missing: exit %d, %s", code, errs)
	}
	orders := "8=FIX.4.2|35=D|49=A|56=B|34=1|52=20261121-06:42:29|11=piped-1|21=1|55=X|54=1|60=20261121-06:42:29|38=5|40=1|\n" +
		"8=FIX.4.4|35=D|49=A|56=B|34=2|52=20261121-06:42:29|11=piped-2|55=X|54=2|60=20261121-06:42:29|38=5|40=1|\n" +
		"8=FIXT.1.1|35=D|1128=9|49=A|56=B|34=3|52=20261121-06:42:29|11=piped-3|55=X|54=2|60=20261121-06:42:29|38=5|40=1|\n"
	code, out, errs := call(t, orders, "submit", "--file", "-", "--seal", "--endpoint", g.endpoint())
	if code != 0 || strings.Count(out, "copies 2") != 3 {
		t.Fatalf("piped: exit %d\n%s%s", code, out, errs)
	}
	until(t, "the sink has all orders", func() bool {
		code, out, _ := call(t, "", "verify", "--endpoint", g.endpoint(), "--sink-dir", sink, "--grid", "dev")
		return code == 0 && strings.Contains(out, "EQUAL") && strings.Contains(out, "4 orders") && !strings.Contains(out, "behind 1")
	})
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	if err := g.cmd.Wait(); err != nil {
		t.Fatalf("dev ended with %v\n%s", err, g.errs.String())
	}
	for _, pid := range g.info.PIDs {
		if alive(pid) {
			t.Errorf("node %d is left", pid)
		}
	}
}

// kill -9 of every node in turn: it comes back as a new member, nothing is lost.
func TestKilledNodesComeBack(t *testing.T) {
	g := startDev(t)
	n := 0
	for i, pid := range g.info.PIDs {
		for range 5 {
			g.must("submit", "--clordid", fmt.Sprintf("o%d", n))
			n++
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		until(t, "the other node takes orders", func() bool {
			code, _, _ := call(t, "", "submit", "--endpoint", g.endpoint(), "--timeout", "5s")
			return code == 0
		})
		until(t, "the killed node is in sync again", func() bool { return !alive(pid) && g.ready(i) && g.ready(1-i) })
	}
	for i := range n {
		g.must("get", "--clordid", fmt.Sprintf("o%d", i))
	}
	if out := g.must("verify"); !strings.Contains(out, "EQUAL") {
		t.Fatal(out)
	}
}

func TestNodesDieWithTheirParent(t *testing.T) {
	g := startDev(t)
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	for _, pid := range g.info.PIDs {
		until(t, fmt.Sprintf("node %d ends", pid), func() bool { return !alive(pid) })
	}
}

func TestThreeReplicasTwoShards(t *testing.T) {
	g := startDev(t, "--replicas", "3", "--shards", "2", "--partitions", "2")
	if len(g.info.Endpoints) != 6 {
		t.Fatalf("endpoints %v", g.info.Endpoints)
	}
	for range 6 {
		if out := g.must("submit"); !strings.Contains(out, "copies 3") {
			t.Fatalf("receipt: %s", out)
		}
	}
	until(t, "every copy knows all 6 orders to be committed", func() bool {
		return strings.Contains(g.must("verify"), "6 orders")
	})
}

// A node that cannot be on its fabric has a valid command line: it fails with the reason.
func TestNoFabric(t *testing.T) {
	status := filepath.Join(t.TempDir(), "network-status")
	if err := os.WriteFile(status, []byte(`[{"name":"pods","interface":"eth0","ips":["10.0.0.1"]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"serve", "--arbiter", "http://127.0.0.1:1", "--grid", "g", "--pod", "p", "--advertise", "10.0.0.1:7400",
		"--fabric-network", "trading/fabric", "--fabric-network-status", status, "--fabric-wait", "0s"}
	code, _, errs := call(t, "", args...)
	if code != command.Failed || !strings.Contains(errs, "network trading/fabric on interface fabric0 is not among the networks of this pod (pods on eth0)") {
		t.Fatalf("exit %d, %s", code, errs)
	}
}

func TestUsageErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.fix")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":    {[]string{"serve", "--nope"}, "unknown flag: --nope; see grid-node serve --help"},
		"no arbiter":      {[]string{"serve", "--grid", "g", "--pod", "p"}, `--arbiter: value "", allowed: kube, or http://host:port`},
		"bad arbiter":     {[]string{"serve", "--arbiter", "etcd://x"}, `--arbiter: value "etcd://x"`},
		"kube outside":    {[]string{"serve", "--grid", "g", "--pod", "p", "--arbiter", "kube"}, "it works inside a pod"},
		"learner rate":    {[]string{"serve", "--arbiter", "http://x:1", "--learner-rate", "fast"}, `--learner-rate: value "fast", allowed: a quantity of bytes a second`},
		"prefault":        {[]string{"serve", "--arbiter", "http://x:1", "--prefault", "some"}, `--prefault: value "some", allowed: a quantity such as`},
		"memory":          {[]string{"serve", "--arbiter", "http://x:1", "--memory-limit", "lots"}, `--memory-limit: value "lots", allowed: a quantity such as`},
		"fabric file":     {[]string{"serve", "--arbiter", "http://x:1", "--advertise", "10.0.0.1:7400", "--fabric-network", "a/b"}, `--fabric-network-status: value ""`},
		"fabric fallback": {[]string{"serve", "--fabric-fallback", "maybe"}, `--fabric-fallback: value "maybe", allowed: refuse, pod-network`},
		"fabric fast":     {[]string{"serve", "--fabric-transport", "rdma"}, `--fabric-transport: value "rdma", allowed: tcp`},
		"fabric address":  {[]string{"serve", "--fabric-network", "a/b", "--advertise", "somewhere"}, `--advertise: value "somewhere", allowed: ip:port`},
		"log level":       {[]string{"serve", "--log-level", "loud"}, `--log-level: value "loud"`},
		"several at once": {[]string{"serve", "--arbiter", "http://x:1", "--grid", "g", "--pod", "p", "--replicas", "9", "--advertise", "x"}, "--replicas: value 9, allowed: 1..3"},
		"dev replicas":    {[]string{"dev", "--replicas", "5"}, "--replicas: value 5, allowed: 1..3"},
		"dev sink":        {[]string{"dev", "--sink", "file"}, `--dir: value "", allowed: a directory`},
		"dev listen":      {[]string{"dev", "--listen", "localhost"}, `--listen: value "localhost", allowed: an IP address`},
		"dev addresses":   {[]string{"dev", "--address-per-node"}, `--listen is "127.0.0.1", allowed: 127.x.y.1`},
		"dev argument":    {[]string{"dev", "now"}, `argument "now"`},
		"get both":        {[]string{"get", "--id", "p0/1", "--clordid", "x"}, "one of them is needed"},
		"get session":     {[]string{"get", "--id", "p0/1", "--fix-session", "FIX.4.4:A->B"}, "--fix-session: allowed with --clordid only"},
		"get mode":        {[]string{"get", "--id", "p0/1", "--mode", "fast"}, `--mode: value "fast", allowed: confirmed, leased, backup`},
		"submit file":     {[]string{"submit", "--file", missing}, "--file: open"},
		"verify grid":     {[]string{"verify", "--sink-dir", "."}, `--grid: value ""`},
		"stray argument":  {[]string{"verify", "now"}, `argument "now", allowed: flags only; see grid-node verify --help`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := call(t, "", c.args...)
			if code != command.Usage || !strings.Contains(errs, c.want) {
				t.Fatalf("exit %d, want %d; stderr %q, want %q; stdout %q", code, command.Usage, errs, c.want, out)
			}
		})
	}
}

func TestNoGridThere(t *testing.T) {
	code, _, errs := call(t, "", "submit", "--endpoint", "127.0.0.1:1", "--timeout", "200ms")
	if code != command.Failed || !strings.Contains(errs, "127.0.0.1:1") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if code, _, errs := call(t, "", "verify", "--endpoint", "127.0.0.1:1", "--timeout", "200ms"); code != 4 {
		t.Fatalf("verify: exit %d: %s", code, errs)
	}
}

func TestSealFIX(t *testing.T) {
	good := sampleOrder("x", time.Unix(0, 0))
	broken := bytes.Replace(bytes.TrimSuffix(good, good[len(good)-7:]), []byte("\x019="), []byte("\x019=9"), 1)
	sealed, err := sealFIX(broken)
	if err != nil || !bytes.Equal(sealed, good) {
		t.Fatalf("%q\n%q, %v", sealed, good, err)
	}
	if _, err := sealFIX([]byte("35=D\x01")); err == nil {
		t.Fatal("a message without BeginString was sealed")
	}
}
