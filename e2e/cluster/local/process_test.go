package local

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStartTime(t *testing.T) {
	line := func(name, state string) string {
		return "42 (" + name + ") " + state + " 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10"
	}
	for _, c := range []struct {
		stat string
		want uint64
		ok   bool
	}{
		{line("cluster", "S"), 98765, true},
		{line("a) S 1 (b", "R"), 98765, true}, // a name made to confuse
		{line("cluster", "Z"), 0, false},      // dead, not yet collected
		{"42 (cluster) S 1", 0, false},
		{"", 0, false},
	} {
		got, err := parseStartTime(c.stat)
		if (err == nil) != c.ok || got != c.want {
			t.Errorf("%q: %d, %v", c.stat, got, err)
		}
	}
	if _, err := startTime(os.Getpid()); err != nil {
		t.Errorf("this process: %v", err)
	}
}

func TestMachinePIDChecksBirth(t *testing.T) {
	plan := &Plan{State: t.TempDir()}
	if plan.machinePID("n") != 0 {
		t.Error("a machine that never was has a process")
	}
	if err := plan.recordBirth("n", os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if plan.machinePID("n") != os.Getpid() {
		t.Error("a running machine was not recognised")
	}
	// The number now belongs to another process.
	if err := writeFile(plan.birthFile("n"), []byte(`{"pid":1,"start":18446744073709551615}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if pid := plan.machinePID("n"); pid != 0 {
		t.Errorf("process %d was taken for the machine", pid)
	}
}

func TestHolds(t *testing.T) {
	ready := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	if holds(server.Client(), server.URL) {
		t.Error("503 counts as ready")
	}
	ready = true
	if !holds(server.Client(), server.URL) {
		t.Error("200 does not count as ready")
	}
	socket := filepath.Join(t.TempDir(), "s")
	if holds(nil, "unix:"+socket) {
		t.Error("a missing socket counts as ready")
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if !holds(nil, "unix:"+socket) {
		t.Error("a listening socket does not count as ready")
	}
}

// TestMachinesInheritNothing: a lock of the shell that switched a machine on
// was once held for as long as the machine ran.
func TestMachinesInheritNothing(t *testing.T) {
	given, err := unix.Open(t.TempDir(), unix.O_RDONLY, 0) // without O_CLOEXEC, as flock(1) passes its lock on
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(given)
	if err := keepFiles(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ls", "-1", "/proc/self/fd").Output()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(strings.Fields(string(out)), strconv.Itoa(given)) && given > 3 { // 3 is what ls itself reads
		t.Errorf("a child has file %d: %q", given, out)
	}
	if flags, err := unix.FcntlInt(uintptr(given), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
}

func TestDescribeExit(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]string{0: "exit code 0", 0x0100: "exit code 1", 9: "killed by killed"} {
		if got := describeExit(status); got != want {
			t.Errorf("status %#x is %q, want %q", uint32(status), got, want)
		}
	}
}

func TestSuperviseRefusesToRunByHand(t *testing.T) {
	if err := Supervise(strings.NewReader("{}")); err == nil || !strings.Contains(err.Error(), "not by hand") {
		t.Errorf("running outside a machine gave %v", err)
	}
}

func TestParseCutPorts(t *testing.T) {
	cut, err := parseCutPorts([]byte(`[{"ifname":"p-xeon-1","flags":["BROADCAST","MULTICAST"]},{"ifname":"p-xeon-2","flags":["BROADCAST","UP","LOWER_UP"]},{}]`))
	if err != nil {
		t.Fatal(err)
	}
	if !cut["p-xeon-1"] || cut["p-xeon-2"] {
		t.Errorf("cut is %v", cut)
	}
	if _, err := parseCutPorts([]byte("{")); err == nil {
		t.Error("nonsense was accepted")
	}
}

func TestFaultsOnAClusterThatIsNot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("gets as far as the missing cluster only as root: run it as root")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c, err := New(t.TempDir(), os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"kill": c.KillNode(t.Context(), "xeon-1"), "start": c.StartNode(t.Context(), "xeon-1"), "cut": c.CutNode(t.Context(), "xeon-1"),
		"load": c.Load(t.Context(), "x.tar"), "exec": c.Exec(t.Context(), "xeon-1", []string{"true"}),
	} {
		if err == nil || !strings.Contains(err.Error(), "make cluster-up") {
			t.Errorf("%s without a cluster: %v", name, err)
		}
	}
	if err := c.Down(t.Context()); err != nil {
		t.Errorf("down without a cluster: %v", err)
	}
	if left := c.Leaks(t.Context()); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestMissingControllers(t *testing.T) {
	for have, want := range map[string]string{
		"cpuset cpu io memory hugetlb pids rdma misc\n": "",
		"memory pids\n": "cpu cpuset",
		"":              "cpu cpuset memory pids",
	} {
		if got := strings.Join(missingControllers(have), " "); got != want {
			t.Errorf("%q lacks %q, want %q", have, got, want)
		}
	}
}
