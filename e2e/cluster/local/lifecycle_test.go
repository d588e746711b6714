package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/cluster/image"
	"github.com/ordergrid/ordergrid/internal/command"
)

// TestMain lets the machines of a test's cluster run this binary as theirs.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == superviseCommand {
		fmt.Fprintln(os.Stderr, Supervise(os.Stdin))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestLifecycle brings up a real cluster beside any that may be running,
// breaks it in every way it can be broken, and removes it. It needs root and
// the programs (cluster binaries), a minute and a gigabyte or two, so it runs
// only when asked for: CLUSTER_LIFECYCLE=1.
func TestLifecycle(t *testing.T) {
	if os.Getenv("CLUSTER_LIFECYCLE") == "" {
		t.Skip("set CLUSTER_LIFECYCLE=1 to bring up a real cluster")
	}
	ctx := context.Background()
	l := &lifecycle{T: t, cluster: scratchCluster(t), client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(func() {
		if err := l.cluster.Down(ctx); err != nil {
			t.Errorf("down: %v", err)
		}
		if left := l.cluster.Leaks(ctx); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if err := l.cluster.Down(ctx); err != nil {
			t.Errorf("down a second time: %v", err)
		}
	})
	l.must(l.cluster.Up(ctx, 0))
	l.plan, _ = l.cluster.load()
	l.must(l.cluster.Up(ctx, 0))
	l.deployEcho(ctx)

	for _, step := range []struct {
		name string
		do   func(context.Context)
	}{
		{"pods across nodes, names, services", l.reachability},
		{"the kernel's own settings are untouched", l.hostSettings},
		{"a node without power", l.powerCut},
		{"a node without network", l.cableCut},
		{"the control plane without power", l.controlPlaneCut},
		{"a supervisor that dies", l.supervisorKilled},
		{"a switch that dies", l.switchKilled},
		{"requests are audited by user", l.audit},
	} {
		if !t.Run(step.name, func(t *testing.T) { l.T = t; step.do(ctx) }) {
			l.T = t
			t.FailNow()
		}
	}
	l.T = t
}

// TestDownAfterInterruption takes down what an interrupted up left, even when
// the cluster's own record of itself is lost.
func TestDownAfterInterruption(t *testing.T) {
	if os.Getenv("CLUSTER_LIFECYCLE") == "" {
		t.Skip("set CLUSTER_LIFECYCLE=1 to bring up a real cluster")
	}
	for _, lose := range []string{"nothing", "the plan", "the machines' records"} {
		t.Run(lose, func(t *testing.T) {
			c := scratchCluster(t)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			if err := c.Up(ctx, 2); err == nil {
				t.Log("up was quicker than the interruption")
			}
			plan, err := c.load()
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.off()) > 0 || len(c.Leaks(context.Background())) == 0 {
				t.Errorf("nothing to take down: %v are off, leaks shows %v", plan.off(), c.Leaks(context.Background()))
			}
			switch lose {
			case "the plan":
				err = os.Remove(c.planFile())
			case "the machines' records":
				err = os.RemoveAll(filepath.Join(plan.State, "machines"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Down(context.Background()); err != nil {
				t.Errorf("down: %v", err)
			}
			if left := c.Leaks(context.Background()); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

type lifecycle struct {
	*testing.T
	cluster *Cluster
	plan    *Plan
	client  *http.Client
}

func (l *lifecycle) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// scratchCluster is a cluster of a checkout of its own that has only what the
// binaries are keyed by, so that the cache is shared with the real checkout.
func scratchCluster(t *testing.T) *Cluster {
	real, err := filepath.Abs("../binaries")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "e2e/cluster"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(root, "e2e/cluster/binaries")); err != nil {
		t.Fatal(err)
	}
	c, err := New(root, io.Discard, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c.steps = command.NewSteps(os.Stderr)
	return c
}

func (l *lifecycle) kubectl(ctx context.Context, args ...string) string {
	l.Helper()
	out, err := run(ctx, nil, filepath.Join(l.plan.Bin, "kubectl"), append([]string{"--kubeconfig", l.plan.kubeconfig()}, args...)...)
	l.must(err)
	return strings.TrimSpace(out)
}

func (l *lifecycle) deployEcho(ctx context.Context) {
	work := l.TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(work, "echo"), "./testdata/echo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		l.Fatalf("%v\n%s", err, out)
	}
	source, err := os.Open("testdata/echo/Dockerfile")
	l.must(err)
	defer source.Close()
	dockerfile, err := image.Parse(source)
	l.must(err)
	archive := filepath.Join(work, "echo.tar")
	_, err = image.WriteFile(archive, dockerfile, work, "ordergrid.dev/echo:test", runtime.GOARCH)
	l.must(err)
	l.must(l.cluster.Load(ctx, archive))
	l.kubectl(ctx, "apply", "-f", "testdata/echo/manifest.yaml")
	l.kubectl(ctx, "-n", "echo", "rollout", "status", "statefulset/web", "--timeout=60s")
}

// eventually repeats a check; what it checks takes seconds, a hang takes
// minutes.
func (l *lifecycle) eventually(what string, check func() error) {
	l.Helper()
	start := time.Now()
	deadline := start.Add(2 * time.Minute)
	var last error
	for {
		err := check()
		if err == nil {
			l.Logf("%s after %s (%v)", what, time.Since(start).Round(time.Millisecond), last)
			return
		}
		last = err
		if time.Now().After(deadline) {
			l.Fatalf("%s: %v", what, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (l *lifecycle) fetch(from string) (string, error) {
	response, err := l.client.Get(from)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

func (l *lifecycle) podIP(ctx context.Context, pod string) string {
	return l.kubectl(ctx, "-n", "echo", "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
}

func (l *lifecycle) nodeOf(ctx context.Context, pod string) string {
	return l.kubectl(ctx, "-n", "echo", "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
}

// reaches checks that the host gets url, through a pod if via is not empty.
func (l *lifecycle) reaches(via, target, want string) {
	l.Helper()
	from := target
	if via != "" {
		from = "http://" + via + ":8080/fetch?url=" + url.QueryEscape(target)
	}
	l.eventually(from, func() error {
		got, err := l.fetch(from)
		if err == nil && !strings.HasPrefix(got, want) {
			err = fmt.Errorf("answered %q, want %q", got, want)
		}
		return err
	})
}

func (l *lifecycle) reachability(ctx context.Context) {
	if a, b := l.nodeOf(ctx, "web-0"), l.nodeOf(ctx, "web-1"); a == b {
		l.Fatalf("both pods are on %s", a)
	}
	ip0, ip1 := l.podIP(ctx, "web-0"), l.podIP(ctx, "web-1")
	service := l.kubectl(ctx, "-n", "echo", "get", "service", "any", "-o", "jsonpath={.spec.clusterIP}")
	l.reaches("", "http://"+ip0+":8080/name", "web-0")
	l.reaches("", "http://"+service+"/name", "web-")
	l.reaches(ip0, "http://"+ip1+":8080/name", "web-1")
	l.reaches(ip0, "http://web-1.web.echo.svc.cluster.local:8080/name", "web-1")
	l.reaches(ip1, "http://web-0.web:8080/name", "web-0")
	l.reaches(ip1, "http://any.echo.svc/name", "web-")
	// As the API server reaches a webhook.
	_, err := runIn(ctx, l.plan.machinePID(controlPlaneName), nil, "bash", "-c", "exec 3<>/dev/tcp/"+service+"/80")
	l.must(err)
}

func (l *lifecycle) hostSettings(ctx context.Context) {
	for _, node := range l.plan.Nodes {
		inside, err := runIn(ctx, l.plan.machinePID(node.Name), nil, "cat", "/proc/sys/kernel/panic")
		l.must(err)
		if strings.TrimSpace(inside) != kernelSettings["kernel/panic"] {
			l.Errorf("%s sees kernel.panic %q", node.Name, inside)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	l.must(err)
	if strings.Contains(string(mounts), l.plan.State) {
		l.Error("a mount of the cluster shows on the host")
	}
}

func (l *lifecycle) powerCut(ctx context.Context) {
	victim := l.nodeOf(ctx, "web-1")
	before := l.kubectl(ctx, "-n", "echo", "get", "pod", "web-1", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	l.must(l.cluster.KillNode(ctx, victim))
	if err := l.cluster.KillNode(ctx, victim); err == nil {
		l.Error("a second kill was not refused")
	}
	if l.plan.machinePID(victim) != 0 {
		l.Error("the node still runs")
	}
	l.must(l.cluster.StartNode(ctx, victim))
	l.eventually("web-1 again", func() error {
		state := l.kubectl(ctx, "-n", "echo", "get", "pod", "web-1", "-o", "jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
		if strings.HasPrefix(state, before+" ") || !strings.HasSuffix(state, "true") {
			return fmt.Errorf("restarts and ready are %q, were %q", state, before)
		}
		return nil
	})
	l.reaches(l.podIP(ctx, "web-0"), "http://web-1.web.echo.svc.cluster.local:8080/name", "web-1")
}

func (l *lifecycle) cableCut(ctx context.Context) {
	victim := l.nodeOf(ctx, "web-1")
	from := "http://" + l.podIP(ctx, "web-1") + ":8080/name"
	l.must(l.cluster.CutNode(ctx, victim))
	if answer, err := l.fetch(from); err == nil {
		l.Errorf("the cut node answered %q", answer)
	}
	l.eventually("the node is noticed to be gone", func() error {
		ready := l.kubectl(ctx, "get", "node", victim, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if ready != "Unknown" {
			return fmt.Errorf("Ready is %s", ready)
		}
		return nil
	})
	l.must(l.cluster.HealNode(ctx, victim))
	l.must(l.cluster.Up(ctx, 0))
	// It may have been evicted; then its name moved to a new pod.
	l.eventually("web-1 answers", func() error {
		_, err := l.fetch("http://" + l.podIP(ctx, "web-1") + ":8080/name")
		return err
	})
}

func (l *lifecycle) controlPlaneCut(ctx context.Context) {
	l.must(l.cluster.KillNode(ctx, controlPlaneName))
	l.must(l.cluster.StartNode(ctx, controlPlaneName))
	l.kubectl(ctx, "-n", "echo", "rollout", "status", "statefulset/web", "--timeout=60s") // etcd kept it
}

// supervisorKilled does what a crash or a kill -9 does; up repairs.
func (l *lifecycle) supervisorKilled(ctx context.Context) {
	node := l.plan.Nodes[len(l.plan.Nodes)-1].Name
	process, err := os.FindProcess(l.plan.machinePID(node))
	l.must(err)
	l.must(process.Kill())
	l.eventually("the machine is off", func() error {
		if l.plan.machinePID(node) != 0 {
			return errors.New("still there")
		}
		return nil
	})
	l.must(l.cluster.Up(ctx, 0))
	if l.plan.machinePID(node) == 0 {
		l.Error("up did not start it again")
	}
}

func (l *lifecycle) switchKilled(ctx context.Context) {
	l.must(l.plan.killMachine(switchName))
	l.must(l.cluster.Up(ctx, 0))
	l.eventually("web-0 answers", func() error {
		_, err := l.fetch("http://" + l.podIP(ctx, "web-0") + ":8080/name")
		return err
	})
}

func (l *lifecycle) audit(context.Context) {
	log, err := os.ReadFile(l.plan.auditLog())
	l.must(err)
	if !strings.Contains(string(log), `"username":"admin"`) {
		l.Error("no request of the administrator is in the audit log")
	}
	if strings.Contains(string(log), `"username":"system:node:`) {
		l.Error("the nodes' own requests are in the audit log")
	}
}
