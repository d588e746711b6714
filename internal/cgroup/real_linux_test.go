package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The kernel stops a process that has used the CPU quota of its group, and the
// process finds that group and sees it in the figures. The process is this test again,
// as burnVar says, moved into a group that has 5 ms of CPU in 50 ms.
func TestThrottledByTheKernel(t *testing.T) {
	if os.Getenv(burnVar) != "" {
		burn(t)
		return
	}
	procs := limitedGroup(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-test.run=^TestThrottledByTheKernel$", "-test.v")
	cmd.Env = append(os.Environ(), burnVar+"=1")
	cmd.Stdout, cmd.Stderr = &out, &out
	moved, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(procs, fmt.Appendf(nil, "%d\n", cmd.Process.Pid), 0o600)
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, moved.Close(), cmd.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), burned) {
		t.Errorf("the process in the group did not say %q:\n%s", burned, &out)
	}
	t.Log(out.String())
}

const (
	burnVar = "ORDERGRID_TEST_BURN_CPU" // tells the test to be the process that burns CPU
	burned  = "periods were cut short"
)

// burn uses CPU until the group of this process was stopped for it three times.
func burn(t *testing.T) {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // its end: this process is in the group
		t.Fatal(err)
	}
	g, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	before := g.Read().CPU
	if before == nil {
		t.Fatalf("the group %+v has a CPU quota, and its figures are not known", *g)
	}
	for {
		now := g.Read().CPU
		n, total, d := now.Throttled-before.Throttled, now.Periods-before.Periods, now.ThrottledTime-before.ThrottledTime
		if n >= 3 {
			if total < n || d <= 0 {
				t.Fatalf("%d of %d periods were throttled for %v: wanted no more than there were, and some time", n, total, d)
			}
			t.Logf("%d of %d %s, %v in all", n, total, burned, d)
			return
		}
		for i := range uint64(1 << 20) {
			busy += i * busy
		}
	}
}

var busy uint64 // so that the work is not left out

// limitedGroup makes a control group with a CPU quota, in the hierarchy in which the
// kernel lets it, and returns the file that takes its processes. The group is removed
// with the test.
func limitedGroup(t *testing.T) (procs string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make a control group")
	}
	self, err := Self()
	if err != nil {
		t.Skip(err)
	}
	var reasons error
	for _, try := range []struct {
		parent string
		limits [][2]string
	}{
		{self.v2, [][2]string{{"cpu.max", "5000 50000"}}},
		{self.cpu, [][2]string{{"cpu.cfs_period_us", "50000"}, {"cpu.cfs_quota_us", "5000"}}},
	} {
		if try.parent == "" {
			continue
		}
		dir, err := os.MkdirTemp(try.parent, "ordergrid-test-")
		if err != nil {
			reasons = errors.Join(reasons, err)
			continue
		}
		t.Cleanup(func() { removeGroup(t, dir) })
		for _, l := range try.limits {
			if err == nil {
				err = writeExisting(filepath.Join(dir, l[0]), l[1])
			}
		}
		if err == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
		reasons = errors.Join(reasons, err)
	}
	t.Skipf("no control group with a CPU quota can be made here: %v", reasons)
	return ""
}

// removeGroup waits for the kernel to forget the process that was in it.
func removeGroup(t *testing.T, dir string) {
	var err error
	for range 100 {
		if err = os.Remove(dir); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(err)
}

// writeExisting makes no file: one that is not there is a controller that is not on.
func writeExisting(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
