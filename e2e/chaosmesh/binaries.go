// Package chaosmesh puts a real Chaos Mesh on a cluster: the controller manager
// and the daemon, without dashboard and DNS server.
package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
)

// programs are what the images are made of. The last is compiled from C.
var programs = []string{"chaos-controller-manager", "chaos-daemon", "chaos-daemon-helper", "nsexec", "memStress", "pause"}

var set = artifact.Set{
	Module: "e2e/chaosmesh/binaries", Cache: "chaosmesh", What: "Chaos Mesh " + crds.Release,
	Mains: []string{
		crds.Module + "/cmd/chaos-controller-manager", crds.Module + "/cmd/chaos-daemon", crds.Module + "/cmd/chaos-daemon-helper",
		"./cmd/nsexec", "./cmd/memStress",
	},
	LDFlags:  "-X " + crds.Module + "/pkg/version.gitVersion=" + crds.Release,
	Programs: programs,
	// The daemon traces processes through C. Both programs are built alike, to
	// share packages.
	CGO: true, Prepare: prepare, Recipe: "fake clocks and pause of " + crds.Module + ", cc -O2",
}

// Ensure builds Chaos Mesh's programs unless the cache holds them and returns
// their directory; see artifact.Set.Ensure.
func Ensure(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	if _, err := exec.LookPath("cc"); err != nil {
		return "", errors.New("no C compiler (cc), which Chaos Mesh's daemon needs; on Debian: apt-get install gcc libc6-dev")
	}
	return set.Ensure(ctx, root, report)
}

// prepare compiles what the published module has as C only. The daemon embeds
// two object files, which the Go command does not make and the module cache may
// not hold: they are put into a copy of the module, which replaces it.
func prepare(ctx context.Context, p artifact.Preparation) ([]string, error) {
	module, err := crds.Dir(ctx, p.Root)
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(p.Scratch, "chaos-mesh")
	for _, dir := range []string{"cmd", "config", "controllers", "pkg"} {
		if err := os.CopyFS(filepath.Join(copied, dir), os.DirFS(filepath.Join(module, dir))); err != nil {
			return nil, err
		}
	}
	p.Report("compiling the fake clocks and pause from C")
	clocks := filepath.Join(copied, "pkg", "time", "fakeclock")
	for _, name := range []string{"fake_clock_gettime", "fake_gettimeofday"} {
		args := []string{"-c", filepath.Join(clocks, name+".c"), "-fPIE", "-O2", "-o", filepath.Join(clocks, name+".o")}
		if runtime.GOARCH == "arm64" {
			args = append(args, "-mcmodel=tiny")
		}
		if err := compile(ctx, args...); err != nil {
			return nil, err
		}
	}
	if err := compile(ctx, "-static", "-O2", "-s", "-o", filepath.Join(p.Out, "pause"), filepath.Join(module, "hack", "pause.c")); err != nil {
		return nil, err
	}
	return replaceModule(p, module, copied)
}

func compile(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "cc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("cc %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// replaceModule writes the go.mod that takes the copy for the module.
func replaceModule(p artifact.Preparation, module, copied string) (flags []string, err error) {
	goMod, err := os.ReadFile(filepath.Join(p.Module, "go.mod"))
	if err != nil {
		return nil, err
	}
	goMod = fmt.Appendf(goMod, "\nreplace %s => %s\n", crds.Module, copied)
	goSum, err := os.ReadFile(filepath.Join(p.Module, "go.sum"))
	if err != nil {
		return nil, err
	}
	upstream, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return nil, err
	}
	build := filepath.Join(p.Scratch, "build")
	return []string{"-modfile=" + build + ".mod"}, errors.Join(
		os.WriteFile(build+".mod", goMod, 0o644), os.WriteFile(build+".sum", goSum, 0o644), os.WriteFile(filepath.Join(copied, "go.mod"), upstream, 0o644))
}
