package testgrid

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

// Program returns a program built from this checkout with these build tags: one of cmd by its name, or a main package
// such as "e2e/cluster/cmd/cluster". It is the same file for all tests of a checkout, so that a suite links it once.
func Program(t testing.TB, pkg string, tags ...string) string {
	t.Helper()
	exe, err := Build(t.Context(), pkg, tags...)
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// Build is Program for what is not a test.
func Build(ctx context.Context, pkg string, tags ...string) (exe string, err error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "out", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if !strings.Contains(pkg, "/") {
		pkg = "cmd/" + pkg
	}
	exe = filepath.Join(dir, strings.Join(append([]string{path.Base(pkg)}, tags...), "-"))
	unlock, err := lock(exe + ".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if file, err := os.Stat(exe); err == nil && file.ModTime().After(began()) {
		return exe, nil
	}
	// A program that is up to date is left as it is. One that is not is replaced, not written over: processes of the
	// former one go on.
	args := append([]string{"build", "-tags", strings.Join(tags, ","), "-o", exe}, artifact.Flags("")...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./%s: %w\n%s", pkg, err, out)
	}
	now := time.Now()
	return exe, os.Chtimes(exe, now, now)
}

// beganEnv is when a run of many packages' tests began, in Unix seconds: hack/test.sh sets it.
const beganEnv = "ORDERGRID_TEST_BEGAN"

// began is since when the sources are taken to be as they are: a program that was built after it is not built again. That
// the go command finds it up to date takes it two seconds of CPU time, and a package starts dozens.
var began = sync.OnceValue(func() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv(beganEnv), 10, 64); err == nil {
		return time.Unix(seconds, 0)
	}
	return time.Now()
})

// lock excludes other processes that build the same program.
func lock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return f.Close, nil
}
