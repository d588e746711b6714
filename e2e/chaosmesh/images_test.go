package chaosmesh

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/cluster/image"
)

func TestParseLDD(t *testing.T) {
	for text, want := range map[string][]string{
		"\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n": {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"},
		"\tnot a dynamic executable\n": nil,
		"\tstatically linked\n":        nil,
		"":                             nil,
		" => \n=>\n(0x1)\n":            nil,
	} {
		if got, err := parseLDD(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := parseLDD("\tlibgone.so => not found\n"); err == nil {
		t.Errorf("a missing library: %q", got)
	}
}

// An image made of a dynamic program and its libraries runs with nothing else.
func TestImageRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("runs the image in a chroot: run it as root")
	}
	root := t.TempDir()
	program, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	files, err := withLibraries(context.Background(), []image.Copy{{Source: program, Target: "/usr/sbin/it"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("a dynamic program alone: %v", files)
	}
	for _, f := range files {
		content, err := os.ReadFile(f.Source)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, f.Target)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, f.Target), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("chroot", root, "/usr/sbin/it", "-c", "echo it runs").CombinedOutput(); err != nil || string(out) != "it runs\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestHashFollowsContentAndPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	seen := map[string]bool{}
	for _, c := range []struct{ content, target string }{{"a", "/x"}, {"b", "/x"}, {"b", "/y"}} {
		if err := os.WriteFile(file, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := hash([]image.Copy{{Source: file, Target: c.target}})
		if err != nil || seen[got] {
			t.Errorf("%v: %q again, %v", c, got, err)
		}
		seen[got] = true
	}
	if _, err := hash([]image.Copy{{Source: file + ".none"}}); err == nil {
		t.Error("a missing file has a hash")
	}
}

// The daemon's image has what a partition takes: without its extensions iptables
// makes chains and then fails at the first rule.
func TestDaemonFiles(t *testing.T) {
	if missing := missingTools(); len(missing) > 0 {
		t.Skipf("not installed: %v; `make chaos-mesh-up` installs them", missing)
	}
	bin := t.TempDir()
	files, err := daemonFiles(context.Background(), bin)
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, f := range files {
		targets[filepath.Base(f.Target)] = true
	}
	for _, want := range []string{"iptables", "ipset", "tc", "ip", "stress-ng", "nsexec", "memStress", "pause", "cdh", "libxt_set.so", "libxt_statistic.so", "libxt_standard.so", "libipt_REJECT.so"} {
		if !targets[want] {
			t.Errorf("%s is not in the image", want)
		}
	}
}
