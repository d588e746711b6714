package skew

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

// lastOfBefore is the commit whose programs stand for the release before. Grids of an
// earlier one had other partitions, and are not updated (docs/versions.md).
const lastOfBefore = "8e28c54"

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

const here = "../.."

var present = sync.OnceValue(func() func(*testing.T) string {
	var exe string
	return func(t *testing.T) string {
		if exe == "" {
			exe = build(t, here, "present")
		}
		return exe
	}
})()

// same is this checkout's node as another program: what a release without a change of the
// protocol is.
func same(t *testing.T) string {
	return build(t, here, "same", "-ldflags", "-X github.com/ordergrid/ordergrid/internal/version.Version=before")
}

// before is the node of lastOfBefore.
func before(t *testing.T) string {
	t.Helper()
	if os.Getenv(historyEnv) == "" {
		t.Skipf("not asked for: %s=1, or make skew", historyEnv)
	}
	if !checkout.HasCommit(t.Context(), here, lastOfBefore) {
		t.Skipf("commit %s is not in this clone (shallow?)", lastOfBefore)
	}
	root := filepath.Join(outDir, "history")
	if err := checkout.LayOutCommit(t.Context(), here, lastOfBefore, root); err != nil {
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
