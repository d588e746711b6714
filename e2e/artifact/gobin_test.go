package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// kube is the shape of the set that needs all there is: several mains, links.
func kube() *Set {
	return &Set{Module: "programs", Cache: "bin", What: "everything", Mains: []string{"./cmd/hyperkube", "helm.sh/helm/v3/cmd/helm"}, LDFlags: "-X main.version=1",
		Programs: []string{"hyperkube", "coredns", "helm", "pause"}, Links: []string{"etcd", "kube-apiserver", "kubectl"}, LinkTo: "hyperkube"}
}

// fakeModule is a module's worth of sources and a go command that "builds"
// programs by writing files, and counts how often it was asked to.
func fakeModule(t *testing.T) (root string, builds func() int) {
	t.Helper()
	root = t.TempDir()
	module := filepath.Join(root, kube().Module)
	for name, content := range map[string]string{
		"go.mod": "module x\n", "go.sum": "sums\n", "cmd/hyperkube/main.go": "package main\n", "cmd/hyperkube/main_test.go": "package main\n",
	} {
		path := filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bin := t.TempDir()
	log := filepath.Join(bin, "builds")
	script := `#!/bin/sh
echo "cgo $CGO_ENABLED: $*" >> ` + bin + `/asked
case "$1" in
env) echo go1.26.8; echo linux; echo amd64 ;;
list) echo a; echo b ;;
build)
  echo build >> ` + log + `
  while [ "$1" != -o ]; do shift; done
  sleep 0.2
  echo k8s.io/api >&2
  if [ -e ` + bin + `/fail ]; then echo "main.go:1:1: no such thing" >&2; exit 1; fi
  for p in hyperkube coredns helm pause; do echo $p > "$2$p"; done ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("FAKE_GO_DIR", bin)
	return root, func() int {
		content, _ := os.ReadFile(log)
		return strings.Count(string(content), "build")
	}
}

func TestEnsureBuildsOnceForManyCallers(t *testing.T) {
	root, builds := fakeModule(t)
	var said atomic.Int64
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			dir, err := kube().Ensure(context.Background(), root, func(format string, args ...any) {
				if strings.Contains(fmt.Sprintf(format, args...), "another process") {
					said.Add(1)
				}
			})
			if err != nil || !kube().complete(dir) {
				t.Errorf("Ensure: %v, complete %v", err, kube().complete(dir))
			}
		})
	}
	wait.Wait()
	if builds() != 1 {
		t.Errorf("%d builds for five callers", builds())
	}
	dir, err := kube().Dir(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	if said.Load() == 0 {
		t.Error("no caller was notified that it waits")
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} { // what envtest looks for
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(content) != "hyperkube\n" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(filepath.Dir(dir), "current")); err != nil || target != filepath.Base(dir) {
		t.Errorf("current points to %q, %v; want %s", target, err, filepath.Base(dir))
	}
}

func TestEnsureAfterFailureAndDamage(t *testing.T) {
	root, builds := fakeModule(t)
	fail := filepath.Join(os.Getenv("FAKE_GO_DIR"), "fail")
	quiet := func(string, ...any) {}
	if err := os.WriteFile(fail, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := kube().Ensure(context.Background(), root, quiet); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Fatalf("a failing build returned %v, not the compiler's words", err)
	}
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	dir, err := kube().Ensure(context.Background(), root, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "helm")); err != nil {
		t.Fatal(err)
	}
	if _, err := kube().Ensure(context.Background(), root, quiet); err != nil || !kube().complete(dir) {
		t.Errorf("damage was not repaired: %v", err)
	}
	if builds() != 3 {
		t.Errorf("%d builds, want 3: failed, first, after damage", builds())
	}
}

// What Prepare makes is there when the build starts, its flags are used, and its
// workplace goes, also when it fails.
func TestPrepare(t *testing.T) {
	root, builds := fakeModule(t)
	set := kube()
	plain, err := set.Dir(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	set.CGO, set.Recipe, set.Programs = true, "nsexec from C", append(set.Programs, "nsexec")
	var scratch string
	fail := errors.New("no C compiler")
	set.Prepare = func(_ context.Context, p Preparation) ([]string, error) {
		scratch = p.Scratch
		return []string{"-modfile=" + p.Scratch + "/x.mod"}, errors.Join(fail, os.WriteFile(filepath.Join(p.Out, "nsexec"), nil, 0o755))
	}
	quiet := func(string, ...any) {}
	if _, err := set.Ensure(context.Background(), root, quiet); !errors.Is(err, fail) || builds() != 0 {
		t.Errorf("a preparation that fails: %v, %d builds", err, builds())
	}
	fail = nil
	dir, err := set.Ensure(context.Background(), root, quiet)
	if err != nil || !set.complete(dir) || dir == plain {
		t.Errorf("%s: %v, complete %v; without recipe it is %s", dir, err, set.complete(dir), plain)
	}
	if _, err := os.Stat(scratch); err == nil {
		t.Error("the workplace of the preparation is still there")
	}
	asked, err := os.ReadFile(filepath.Join(os.Getenv("FAKE_GO_DIR"), "asked"))
	if err != nil || !strings.Contains(string(asked), "cgo 1: build") || !strings.Contains(string(asked), "-modfile="+scratch+"/x.mod") {
		t.Errorf("go was asked %s, %v", asked, err)
	}
}

func TestKeyFollowsSources(t *testing.T) {
	root, _ := fakeModule(t)
	module := filepath.Join(root, kube().Module)
	seen := map[string]string{}
	check := func(change string, same bool) {
		t.Helper()
		id, err := kube().key(context.Background(), module)
		if err != nil {
			t.Fatal(err)
		}
		if earlier, known := seen[id]; known != same {
			t.Errorf("after %s the key is %s, as after %q", change, id, earlier)
		}
		seen[id] = change
	}
	check("nothing", false)
	check("nothing again", true)
	for _, name := range []string{"go.mod", "go.sum", "cmd/hyperkube/main.go"} {
		if err := os.WriteFile(filepath.Join(module, name), []byte("changed "+name), 0o644); err != nil {
			t.Fatal(err)
		}
		check("a change of "+name, false)
	}
	if err := os.WriteFile(filepath.Join(module, "cmd/hyperkube/main_test.go"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("a change of a test", true)
	if err := os.RemoveAll(filepath.Join(module, "cmd")); err != nil {
		t.Fatal(err)
	}
	check("a module without mains of its own", false)
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 100, time.Minute, "compiled 0 of 100 packages"},
		{25, 100, time.Minute, "compiled 25 of 100 packages, about 3m0s to go"},
		{100, 100, time.Minute, "compiled all 100 packages; linking"},
		{7, 0, time.Minute, "compiled all 0 packages; linking"},
	} {
		if got := describe(c.done, c.total, c.elapsed); got != c.want {
			t.Errorf("describe(%d, %d) = %q, want %q", c.done, c.total, got, c.want)
		}
	}
}

func TestReadPackages(t *testing.T) {
	var done atomic.Int64
	rest := readPackages(strings.NewReader("k8s.io/api\ngo: downloading x v1\nfmt\n# k8s.io/api\nmain.go:1:2: bad\n"), &done)
	if done.Load() != 2 {
		t.Errorf("counted %d packages, want 2", done.Load())
	}
	if want := "go: downloading x v1\n# k8s.io/api\nmain.go:1:2: bad\n"; rest != want {
		t.Errorf("rest is %q, want %q", rest, want)
	}
}

func TestAvailableKiB(t *testing.T) {
	for meminfo, want := range map[string]int64{
		"MemTotal:       24683952 kB\nMemFree: 1 kB\nMemAvailable:   20123456 kB\n": 20123456,
		"MemTotal: 1 kB\n":           0,
		"MemAvailable: lots of it\n": 0,
		"":                           0,
	} {
		if got := availableKiB(meminfo); got != want {
			t.Errorf("%q: %d, want %d", meminfo, got, want)
		}
	}
}
