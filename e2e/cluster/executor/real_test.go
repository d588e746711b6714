package executor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor/conformance"
	"github.com/ordergrid/ordergrid/e2e/cluster/executor/packets"
)

// processes are pods without Kubernetes: a process in a network namespace of
// its own, with a cable to this host.
type processes map[string]int // by UID

func (processes) Nodes(context.Context) ([]string, error) { return []string{"here"}, nil }
func (p processes) PodProcess(_ context.Context, _, uid string) (int, error) {
	return p[uid], nil
}
func (processes) OwnNetwork(context.Context, string, int) (bool, error) { return true, nil }

// newPod is one, and the address at the other end of its cable.
func newPod(t *testing.T) (pods processes, pod executor.Pod, peer string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces and netfilter queues: run it as root")
	}
	for _, program := range []string{"nsenter", "ip", "iptables-restore"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s (Debian: util-linux, iproute2, iptables): %v", program, err)
		}
	}
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Skipf("no network namespace can be made here: %v; run it as root outside a container, or in a privileged one", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	// The other end has a namespace as well: this host's routes are left alone.
	peerCmd := exec.Command("sleep", "300")
	peerCmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := peerCmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peerCmd.Process.Kill(); _ = peerCmd.Wait() })
	for _, line := range []string{
		fmt.Sprintf("%d link add data0 type veth peer name data0 netns %d", pid, peerCmd.Process.Pid),
		fmt.Sprintf("%d addr add 10.98.0.1/24 dev data0", pid), fmt.Sprintf("%d link set data0 up", pid),
		fmt.Sprintf("%d addr add 10.98.0.2/24 dev data0", peerCmd.Process.Pid), fmt.Sprintf("%d link set data0 up", peerCmd.Process.Pid),
	} {
		fields := strings.Fields(line)
		if out, err := exec.Command("nsenter", append([]string{"--net=/proc/" + fields[0] + "/ns/net", "--", "ip"}, fields[1:]...)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	return processes{"0a1b": pid}, executor.Pod{Name: "orders-0-0", IP: "10.98.0.1", Node: "here", UID: "0a1b"}, "10.98.0.2"
}

// served is a server at an address that stays the same over restarts.
type served struct {
	t       *testing.T
	options func() Options
	server  *Server
	http    *http.Server
	addr    string
}

func serve(t *testing.T, options func() Options) *served {
	t.Helper()
	s := &served{t: t, options: options, addr: "127.0.0.1:0"}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *served) start() {
	s.t.Helper()
	server, err := NewServer(s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr, s.server, s.http = listener.Addr().String(), server, &http.Server{Handler: server.Handler(), ReadHeaderTimeout: time.Second}
	go func() { _ = s.http.Serve(listener) }()
}

func (s *served) stop() {
	_ = s.http.Close()
	s.server.Close()
}

// TestConformance runs the protocol's own tests on real packets.
func TestConformance(t *testing.T) {
	pods, pod, peer := newPod(t)
	dir := t.TempDir()
	s := serve(t, func() Options {
		return Options{Name: "test", Dir: dir, Token: "secret", Hands: []Hands{NewPods(pods)}, Say: t.Logf}
	})
	provoke := func(t *testing.T, _ *executor.Fault) {
		// An unanswered connection attempt sends packets enough.
		pid := fmt.Sprint(pods[pod.UID])
		script := fmt.Sprintf("for i in 1 2 3 4 5; do echo x > /dev/udp/%s/9; done", peer)
		if out, err := exec.Command("nsenter", "--net=/proc/"+pid+"/ns/net", "--", "bash", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	fault := func(kind string, p executor.Parameters) executor.Fault {
		return executor.Fault{Type: kind, Namespace: "trading", Pods: []executor.Pod{pod}, Peers: []executor.Pod{{Name: "orders-0-1", IP: peer}}, Parameters: p}
	}
	conformance.Run(t, conformance.Target{
		URL: "http://" + s.addr, Token: "secret", Provoke: provoke,
		Restart: func(t *testing.T) { s.t = t; s.stop(); s.start() },
		Faults: []executor.Fault{
			fault(executor.NetworkDelay, executor.Parameters{Latency: &metav1.Duration{Duration: 10 * time.Millisecond}}),
			fault(executor.NetworkLoss, executor.Parameters{Loss: 100}),
			fault(executor.NetworkDuplicate, executor.Parameters{Duplicate: 100}),
			fault(executor.NetworkCorrupt, executor.Parameters{Corrupt: 100}),
		},
	})
	if left, err := packets.Left(t.Context(), packets.Namespace{PID: pods[pod.UID]}); err != nil || len(left) > 0 {
		t.Errorf("rules are left: %v, %v", left, err)
	}
}
