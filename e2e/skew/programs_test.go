package skew

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lastOfBefore is the last commit whose programs spoke version 1 only.
const lastOfBefore = "ee32abf"

// historyEnv asks for the real programs of that commit, too: a build of another
// checkout takes a minute.
const historyEnv = "ORDERGRID_SKEW_HISTORY"

var outDir string // of all builds

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ordergrid-skew-")
	if err != nil {
		panic(err)
	}
	outDir = dir
	code := m.Run()
	os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	os.Exit(code)
}

// build compiles cmd/grid-node of a checkout.
func build(t *testing.T, root, name string, args ...string) string {
	t.Helper()
	exe := filepath.Join(outDir, name)
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-buildvcs=false"}, args...), "-o", exe, "./cmd/grid-node")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", root, err, out)
	}
	return exe
}

const checkout = "../.."

var present = sync.OnceValue(func() func(*testing.T) string {
	var exe string
	return func(t *testing.T) string {
		if exe == "" {
			exe = build(t, checkout, "present")
		}
		return exe
	}
})()

// compat is this checkout's node, that speaks the version before only.
func compat(t *testing.T) string { return build(t, checkout, "compat", "-tags", "wire_previous") }

// history is the node of lastOfBefore.
func history(t *testing.T) string {
	t.Helper()
	if os.Getenv(historyEnv) == "" {
		t.Skipf("not asked for: %s=1, or make skew", historyEnv)
	}
	git := exec.Command("git", "archive", lastOfBefore)
	git.Dir = checkout
	if err := exec.Command("git", "-C", checkout, "cat-file", "-e", lastOfBefore+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s is not in this clone, which is shallow; git fetch --unshallow: %v", lastOfBefore, err)
	}
	root := filepath.Join(outDir, "history")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	tar := exec.Command("tar", "-x", "-C", root)
	var err error
	if tar.Stdin, err = git.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := tar.Start(); err != nil {
		t.Fatal(err)
	}
	if err := git.Run(); err != nil {
		t.Fatalf("git archive %s: %v", lastOfBefore, err)
	}
	if err := tar.Wait(); err != nil {
		t.Fatal(err)
	}
	return build(t, root, "before")
}

// run is a command of a program.
func run(t *testing.T, exe string, args ...string) string {
	t.Helper()
	out, err := exec.Command(exe, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(exe), strings.Join(args, " "), err, out)
	}
	return string(out)
}
