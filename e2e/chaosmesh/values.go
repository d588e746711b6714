package chaosmesh

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// AnnotationLacks is on the daemon's pods where their image lacks what some kinds
// of fault take: the kinds, with commas. A fault of such a kind fails half-way.
const AnnotationLacks = "ordergrid.dev/chaos-mesh-lacks"

// lacks are the kinds whose helpers are published as binaries only, outside of
// every package registry, or which take a server that is left out.
var lacks = []string{"BlockChaos", "DNSChaos", "HTTPChaos", "IOChaos", "JVMChaos", "KernelChaos"}

// settings are what differs between clusters.
type settings struct {
	manager, daemon string // image repositories, with registry; "" is the published one
	tag             string
	pause           string // image of a container that does nothing, for pod-failure
	runtime         string // of the nodes: containerd, crio, docker
	socket          string // of the runtime, on the nodes
}

// values are the chart's: controller manager and daemon, nothing else. RBAC and
// the security mode are the chart's own: the creator of a fault must be allowed
// to in the namespace it hits. The filter of namespaces stays off: it takes an
// annotation on a namespace, while a drill has its own list of namespaces.
func (s settings) values() ([]byte, error) {
	manager := map[string]any{
		"replicaCount": 1, "leaderElection": map[string]any{"enabled": false},
		"podChaos": map[string]any{"podFailure": map[string]any{"pauseImage": s.pause}},
	}
	daemon := map[string]any{"runtime": s.runtime, "socketPath": s.socket}
	if s.manager != "" {
		manager["image"], daemon["image"] = imageValue(s.manager, s.tag), imageValue(s.daemon, s.tag)
		// The chart's list of capabilities is enough for what our image can do, and
		// the local cluster's API server refuses privileged containers.
		daemon["privileged"] = false
		daemon["podAnnotations"] = map[string]any{AnnotationLacks: strings.Join(lacks, ",")}
	}
	return yaml.Marshal(map[string]any{
		"controllerManager": manager, "chaosDaemon": daemon,
		"dashboard": map[string]any{"create": false}, "dnsServer": map[string]any{"create": false},
		"enableProfiling": false, "images": map[string]any{"tag": s.tag},
	})
}

func imageValue(repository, tag string) map[string]any {
	registry, name, _ := strings.Cut(repository, "/")
	return map[string]any{"registry": registry, "repository": name, "tag": tag}
}

// sockets of the container runtimes, by the name a node reports.
var sockets = map[string]struct{ runtime, socket string }{
	"containerd": {"containerd", "/run/containerd/containerd.sock"},
	"k3s":        {"containerd", "/run/k3s/containerd/containerd.sock"},
	"cri-o":      {"crio", "/var/run/crio/crio.sock"},
	"docker":     {"docker", "/var/run/docker.sock"},
}

// useRuntime takes the runtime of nodes, which report it like containerd://1.7.2.
// One daemon set has one runtime.
func (s *settings) useRuntime(versions []string) error {
	for _, version := range versions {
		name, _, _ := strings.Cut(version, "://")
		if strings.Contains(version, "-k3s") {
			name = "k3s"
		}
		found, known := sockets[name]
		if !known {
			return fmt.Errorf("container runtime %q: Chaos Mesh's daemon knows containerd, cri-o and docker", version)
		}
		if s.socket != "" && s.socket != found.socket {
			return fmt.Errorf("nodes have several container runtimes (%s): install Chaos Mesh by hand, one daemon set for each", strings.Join(versions, ", "))
		}
		s.runtime, s.socket = found.runtime, found.socket
	}
	if s.socket == "" {
		return fmt.Errorf("the cluster has no nodes")
	}
	return nil
}
