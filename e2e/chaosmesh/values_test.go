package chaosmesh

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestValues(t *testing.T) {
	s := settings{manager: "ordergrid.dev/chaos-mesh", daemon: "ordergrid.dev/chaos-daemon", tag: "abc", pause: "p:1", runtime: "containerd", socket: "/run/x.sock"}
	text, err := s.values()
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		ControllerManager struct {
			Image    struct{ Registry, Repository, Tag string }
			PodChaos struct{ PodFailure struct{ PauseImage string } }
		}
		ChaosDaemon struct {
			Image               struct{ Registry, Repository, Tag string }
			Runtime, SocketPath string
		}
		Dashboard, DNSServer struct{ Create *bool }
	}
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if got := v.ControllerManager.Image; got.Registry != "ordergrid.dev" || got.Repository != "chaos-mesh" || got.Tag != "abc" {
		t.Errorf("controller manager's image %+v", got)
	}
	if got := v.ChaosDaemon; got.Image.Repository != "chaos-daemon" || got.Runtime != "containerd" || got.SocketPath != "/run/x.sock" {
		t.Errorf("daemon %+v", got)
	}
	if v.ControllerManager.PodChaos.PodFailure.PauseImage != "p:1" || v.Dashboard.Create == nil || *v.Dashboard.Create || v.DNSServer.Create == nil || *v.DNSServer.Create {
		t.Errorf("%s", text)
	}
	published := settings{tag: "v2.8.4", runtime: "crio"}
	if text, err := published.values(); err != nil || strings.Contains(string(text), "registry") || !strings.Contains(string(text), "tag: v2.8.4") {
		t.Errorf("published images: %s, %v", text, err)
	}
}

func TestUseRuntime(t *testing.T) {
	for _, c := range []struct {
		versions []string
		socket   string
		err      string
	}{
		{[]string{"containerd://1.6.20", "containerd://2.1.0"}, "/run/containerd/containerd.sock", ""},
		{[]string{"containerd://1.7.2-k3s1"}, "/run/k3s/containerd/containerd.sock", ""},
		{[]string{"cri-o://1.30"}, "/var/run/crio/crio.sock", ""},
		{[]string{"containerd://1.6.20", "cri-o://1.30"}, "", "several container runtimes"},
		{[]string{"podman"}, "", "podman"},
		{[]string{""}, "", "container runtime"},
		{nil, "", "no nodes"},
	} {
		var s settings
		err := s.useRuntime(c.versions)
		if c.err == "" && (err != nil || s.socket != c.socket) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %q, %v", c.versions, s.socket, err)
		}
	}
}

func TestReady(t *testing.T) {
	ready := State{Installed: true, current: true, Manager: 1, ManagerWanted: 1, Daemons: 2, DaemonsWanted: 2}
	if !ready.Ready() {
		t.Error("all there is not ready")
	}
	for name, spoil := range map[string]func(*State){
		"no CRDs": func(s *State) { s.Installed = false }, "an old spec": func(s *State) { s.current = false },
		"a daemon missing": func(s *State) { s.Daemons = 1 }, "no daemons wanted yet": func(s *State) { s.Daemons, s.DaemonsWanted = 0, 0 },
		"no manager": func(s *State) { s.Manager = 0 }, "no deployment": func(s *State) { s.Manager, s.ManagerWanted = 0, 0 },
	} {
		s := ready
		spoil(&s)
		if s.Ready() || s.String() == "" {
			t.Errorf("%s: ready", name)
		}
	}
}

func TestAnswer(t *testing.T) {
	status := func(s corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: s}}}}
	}
	ended := func(code int32, message string) *corev1.Pod {
		return status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}})
	}
	r, err := answer(ended(0, `{"node":"a","features":{"tbf":{"supported":true}}}`))
	if err != nil || r.Node != "a" || !r.Features["tbf"].Supported {
		t.Errorf("%+v, %v", r, err)
	}
	for want, pod := range map[string]*corev1.Pod{
		"no capability":        ended(4, "order-probe: no capability\n"),
		"unexpected end":       ended(0, `{"node":`),
		"ErrImagePull: absent": status(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "absent"}}),
		"pending":              status(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}),
	} {
		if _, err := answer(pod); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
