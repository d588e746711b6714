package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The kernel throttles a process that has used the CPU quota of its group, and the process finds
// that group and its statistics. The process is this test again, selected by burnVar, moved into a
// group with 5 ms of CPU in 50 ms.
func TestThrottledByTheKernel(t *testing.T) {
	if os.Getenv(burnVar) != "" {
		burn(t)
		return
	}
	procs := limitedGroup(t).Procs()
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
		t.Errorf("the process in the group did not print %q:\n%s", burned, &out)
	}
	t.Log(out.String())
}

const (
	burnVar = "ORDERGRID_TEST_BURN_CPU" // makes the test the process that burns CPU
	burned  = "periods were cut short"
)

// burn uses CPU until the group of this process was throttled three times.
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
		t.Fatalf("the group %+v has a CPU quota, but its statistics are unknown", *g)
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

var busy uint64 // so that the work is not optimized away

// limitedGroup is a control group with a CPU quota, removed with the test.
func limitedGroup(t *testing.T) *Limited {
	t.Helper()
	l, err := NewLimited()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := l.Remove(); err != nil {
			t.Error(err)
		}
	})
	if err := l.Quota(5*time.Millisecond, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	return l
}
