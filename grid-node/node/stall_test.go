package node

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// lines passes log lines on.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

func TestStallIsCountedAndExplained(t *testing.T) {
	said := make(lines, 4)
	w := newWatchdog("data", &Config{Lease: 200 * time.Millisecond, Transport: transport.KindNet, Log: slog.New(slog.NewTextHandler(said, nil))})
	now := int64(5e9)
	for _, step := range []struct {
		after  time.Duration
		stalls uint64
	}{{0, 0}, {10 * time.Millisecond, 0}, {100 * time.Millisecond, 0}, {573 * time.Millisecond, 1}, {10 * time.Millisecond, 1}} {
		now += int64(step.after)
		if got := w.tick(now); got != int64(step.after) || w.stats.Stalls != step.stalls {
			t.Fatalf("after %v: interval %d, stalls %d, want %d", step.after, got, w.stats.Stalls, step.stalls)
		}
	}
	if w.stats.Stalled != 573e6 {
		t.Errorf("stalled for %d ns, want 573 ms", w.stats.Stalled)
	}
	if line := <-said; !strings.Contains(line, `msg="a loop was held up" loop=data ms=573`) {
		t.Errorf("logged %q", line)
	}
}

func TestCause(t *testing.T) {
	const ms = int64(time.Millisecond)
	for want, u := range map[string]metrics.ThreadUsage{
		"had no core":     {Waited: 400 * ms, User: 50 * ms},
		"from a disk":     {System: 400 * ms, MajorFaults: 2},
		"the kernel work": {System: 400 * ms, MinorFaults: 9},
		"loop itself":     {User: 400 * ms},
		"slept in":        {User: 1 * ms},
	} {
		if got := cause(500*ms, u); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

// A thread is accounted for only where a loop stays on one: what another thread used
// would be blamed for a stall.
func TestOnlyPinnedLoopsAreMetered(t *testing.T) {
	epoll := runtime.GOOS == "linux"
	for kind, pinned := range map[transport.Kind]bool{transport.KindAuto: epoll, transport.KindEpoll: true, transport.KindNet: false} {
		if w := newWatchdog("data", &Config{Transport: kind}); w.pinned != pinned {
			t.Errorf("transport %q: metered %v, want %v", kind, w.pinned, pinned)
		}
	}
}

// The kernel accounts for the thread that asks, and reading that costs no
// allocation: it is done at each tick.
func TestThreadMeter(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var m threadMeter
	defer m.close()
	before := m.read()
	if !before.Known {
		t.Skip("this system does not account for threads: run it on Linux with /proc")
	}
	n := 0
	for m.read().Since(before).User == 0 && n < 1e9 { // CPU time moves only if this thread is charged
		n++
	}
	if u := m.read().Since(before); u.User <= 0 || u.System < 0 || u.Waited < 0 {
		t.Errorf("usage %+v", u)
	}
	if n := testing.AllocsPerRun(100, func() { m.read() }); n != 0 {
		t.Errorf("%v allocations per reading, want 0", n)
	}
}
