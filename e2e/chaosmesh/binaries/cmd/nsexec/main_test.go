package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	paths, command, err := parse(strings.Fields("-n /proc/1/ns/net -p /proc/1/ns/pid -- tc -n x -- y"))
	if err != nil || paths["-n"] != "/proc/1/ns/net" || paths["-p"] != "/proc/1/ns/pid" || !slices.Equal(command, strings.Fields("tc -n x -- y")) {
		t.Errorf("%v %v %v", paths, command, err)
	}
	for _, args := range []string{"", "--", "-n", "-n /x", "-n /x --", "-x y -- z", "tc", "-l -n /x -- y"} {
		if _, command, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%q: %q", args, command)
		}
	}
}

// The command is where it was sent, gets SIGTERM, and nothing of it stays.
func TestNamespaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes namespaces: run it as root")
	}
	binary := filepath.Join(t.TempDir(), "nsexec")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	holder := exec.Command("unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", "ip link add trial0 type bridge && echo ready && exec sleep 300")
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	if _, err := stdout.Read(make([]byte, 16)); err != nil {
		t.Skip("no namespaces can be made here, run it outside a container or in a privileged one: ", err)
	}
	child := "/proc/" + strings.TrimSpace(output(t, "pgrep", "-P", strconv.Itoa(holder.Process.Pid))) + "/ns/"
	if out := output(t, binary, "-n", child+"net", "--", "ip", "link"); !strings.Contains(out, "trial0") {
		t.Errorf("not in the network namespace: %s", out)
	}
	if out := output(t, binary, "-p", child+"pid", "--", "sh", "-c", "echo $$; exit 0"); strings.TrimSpace(out) == "" || len(strings.TrimSpace(out)) > 2 {
		t.Errorf("PID %s in a namespace of two processes", out)
	}
	mark := "86413"
	long := exec.Command(binary, "-p", child+"pid", "--", "sh", "-c", "sleep "+mark+" & sleep "+mark)
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(strings.Fields(pgrep(mark))) < 2 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	_ = long.Process.Signal(syscall.SIGTERM)
	_ = long.Wait()
	for deadline := time.Now().Add(10 * time.Second); pgrep(mark) != "" && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if left := pgrep(mark); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func pgrep(mark string) string {
	out, _ := exec.Command("pgrep", "-x", "-f", "sleep "+mark).Output() // exit code 1 is none
	return string(out)
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v %s", name, args, err, out)
	}
	return string(out)
}
