//go:build e2e

package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

// TestFaults installs Chaos Mesh and gives a pod every fault its node can be
// given. The evidence of a fault is never Chaos Mesh's own report.
func TestFaults(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	w := admit(ctx, t)
	reports, err := w.mesh.Nodes(ctx, "ordergrid.dev/order-probe:dev")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		show func(context.Context)
	}{
		{"pod-kill", w.podKill}, {"pod-failure", w.podFailure}, {"container-kill", w.containerKill},
		{"partition", w.partition}, {"bandwidth", w.bandwidth}, {"delay", w.delay},
		{"cpu", w.cpu}, {"memory", w.memory}, {"time", w.time},
		{"partition without manager", w.managerKilled}, {"partition without daemon", w.daemonKilled}, {"cpu without daemon", w.stressorOrphaned},
	} {
		ok := t.Run(c.name, func(t *testing.T) {
			w.T = t
			name, _, _ := strings.Cut(c.name, " ")
			spec := w.faults[name].Spec
			action, _ := spec["action"].(string)
			fault := nodefeatures.Fault{Kind: w.faults[name].Kind, Action: action, Peers: spec["target"] != nil}
			for i := range reports {
				if lacks := reports[i].Lacks(fault); len(lacks) > 0 {
					t.Skip(lacks)
				}
			}
			c.show(ctx)
		})
		if w.T = t; !ok {
			t.FailNow()
		}
	}
}

func (w *ward) podKill(ctx context.Context) {
	before, err := w.pod(ctx, "patient-0")
	if err != nil {
		w.Fatal(err)
	}
	end := w.inject(ctx, "pod-kill")
	w.eventually("another pod is in its place", func() error {
		now, err := w.pod(ctx, "patient-0")
		if err == nil && now.UID == before.UID {
			err = errors.New("the same pod")
		}
		return err
	})
	end()
}

func (w *ward) podFailure(ctx context.Context) {
	end := w.inject(ctx, "pod-failure")
	w.eventually("the pod does not answer", func() error { return gone(w.get(ctx, "patient-0", "/name")) })
	end()
}

func gone(answer string, err error) error {
	if err == nil {
		return fmt.Errorf("it answers %s", answer)
	}
	return nil
}

func (w *ward) containerKill(ctx context.Context) {
	before, err := w.pod(ctx, "patient-0")
	if err != nil {
		w.Fatal(err)
	}
	end := w.inject(ctx, "container-kill")
	w.eventually("the container has another id in the same pod", func() error {
		now, err := w.pod(ctx, "patient-0")
		if err == nil && (now.UID != before.UID || now.Status.ContainerStatuses[0].RestartCount == before.Status.ContainerStatuses[0].RestartCount) {
			err = errors.New("it has not restarted")
		}
		return err
	})
	end()
}

// partition separates the two pods only.
func (w *ward) partition(ctx context.Context) {
	end := w.inject(ctx, "partition")
	for _, way := range [][2]string{{"patient-0", "patient-1"}, {"patient-1", "patient-0"}} {
		if err := w.reaches(ctx, way[0], way[1]); err == nil || !strings.Contains(err.Error(), "502") {
			w.Errorf("%s to %s: %v; want the asked pod to answer that the other does not", way[0], way[1], err)
		}
	}
	end()
}

// bandwidth of 1 megabyte/s out of the pod: two in a row take longer than one second.
func (w *ward) bandwidth(ctx context.Context) {
	w.client.Timeout = time.Minute
	defer func() { w.client.Timeout = patience }()
	fetch := func() time.Duration {
		start := time.Now()
		for range 2 {
			if body, err := w.get(ctx, "patient-0", "/megabyte"); err != nil || len(body) != 1<<20 {
				w.Fatalf("%d bytes, %v", len(body), err)
			}
		}
		return time.Since(start)
	}
	free := fetch()
	end := w.inject(ctx, "bandwidth")
	limited := fetch()
	w.Logf("two megabytes: %s without, %s with the fault", free, limited)
	if limited < time.Second {
		w.Errorf("two megabytes in %s at 1 megabyte/s", limited)
	}
	end()
}

func (w *ward) delay(ctx context.Context) {
	end := w.inject(ctx, "delay")
	start := time.Now()
	if _, err := w.get(ctx, "patient-0", "/name"); err != nil {
		w.Error(err)
	}
	if took := time.Since(start); took < 300*time.Millisecond {
		w.Errorf("an answer in %s through a delay of 300 ms", took)
	}
	end()
}

// read is the first of the pod's files that is there: cgroups have two versions.
func (w *ward) read(ctx context.Context, pod string, paths ...string) string {
	w.Helper()
	var last error
	for _, path := range paths {
		text, err := w.get(ctx, pod, "/file?path="+path)
		if err == nil {
			return strings.TrimSpace(text)
		}
		last = err
	}
	w.Fatal(last)
	return ""
}

// cpuUsed is the processor time of the pod's container.
func (w *ward) cpuUsed(ctx context.Context) time.Duration {
	w.Helper()
	text := w.read(ctx, "patient-0", "/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage")
	unit := time.Nanosecond
	for line := range strings.Lines(text) {
		if usec, found := strings.CutPrefix(line, "usage_usec "); found {
			text, unit = strings.TrimSpace(usec), time.Microsecond
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return time.Duration(n) * unit
}

func (w *ward) cpu(ctx context.Context) {
	end := w.inject(ctx, "cpu")
	before := w.cpuUsed(ctx)
	w.eventually("the container has used a second of processor time it has no use for", func() error {
		if used := w.cpuUsed(ctx) - before; used < time.Second {
			return fmt.Errorf("used %s", used)
		}
		return nil
	})
	end()
	before = w.cpuUsed(ctx)
	time.Sleep(2 * time.Second)
	if used := w.cpuUsed(ctx) - before; used > time.Second {
		w.Errorf("%s of processor time in two seconds after the fault", used)
	}
}

func (w *ward) memory(ctx context.Context) {
	used := func() int64 {
		text := w.read(ctx, "patient-0", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		return n
	}
	before := used()
	end := w.inject(ctx, "memory")
	w.eventually("the container holds 64 MB more", func() error {
		if more := used() - before; more < 60<<20 {
			return fmt.Errorf("%d bytes more", more)
		}
		return nil
	})
	end()
	w.eventually("and no longer", func() error {
		if more := used() - before; more > 30<<20 {
			return fmt.Errorf("%d bytes more", more)
		}
		return nil
	})
}

// time goes by ten minutes behind in one pod only.
func (w *ward) time(ctx context.Context) {
	behind := func(pod string) time.Duration {
		text, err := w.get(ctx, pod, "/clock")
		if err != nil {
			w.Fatal(err)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			w.Fatal(err)
		}
		return time.Since(time.Unix(0, n))
	}
	end := w.inject(ctx, "time")
	hit, other := behind("patient-0"), behind("patient-1")
	w.Logf("patient-0 is %s behind, patient-1 %s", hit, other)
	if (hit-10*time.Minute).Abs() > time.Minute || other.Abs() > time.Minute {
		w.Errorf("patient-0 is %s behind, patient-1 %s; want 10m and nothing", hit, other)
	}
	end()
	if after := behind("patient-0"); after.Abs() > time.Minute {
		w.Errorf("patient-0 is %s behind after the fault", after)
	}
}

// restart kills the pods of one of Chaos Mesh's parts and waits for new ones.
func (w *ward) restart(ctx context.Context, component string) {
	w.Helper()
	if _, err := w.mesh.kube.Run(ctx, "-n", Namespace, "delete", "pod", "-l", "app.kubernetes.io/component="+component, "--grace-period=0", "--force"); err != nil {
		w.Fatal(err)
	}
	w.eventually("another "+component, func() error { return w.mesh.wait(ctx) })
}

// managerKilled: a fault stays while the manager is down, and is reverted by the next one.
func (w *ward) managerKilled(ctx context.Context) {
	end := w.inject(ctx, "partition")
	w.restart(ctx, "controller-manager")
	if err := w.reaches(ctx, "patient-0", "patient-1"); err == nil {
		w.Error("the fault went with the manager")
	}
	end()
}

// daemonKilled: what a daemon has put into a pod's network is reverted by the next one.
func (w *ward) daemonKilled(ctx context.Context) {
	end := w.inject(ctx, "partition")
	w.restart(ctx, "chaos-daemon")
	if err := w.reaches(ctx, "patient-0", "patient-1"); err == nil {
		w.Error("the fault went with the daemon")
	}
	end()
}

// stressorOrphaned: a stressor ends with the daemon that has started it, and the
// next daemon, which does not know of it, takes the fault for ended.
func (w *ward) stressorOrphaned(ctx context.Context) {
	end := w.inject(ctx, "cpu")
	w.restart(ctx, "chaos-daemon")
	before := w.cpuUsed(ctx)
	time.Sleep(2 * time.Second)
	if used := w.cpuUsed(ctx) - before; used > time.Second {
		w.Errorf("%s of processor time in two seconds after the daemon's end", used)
	}
	end()
}
