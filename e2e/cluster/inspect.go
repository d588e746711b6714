package cluster

import (
	"context"
	"fmt"
	"strings"
)

// Inspectable is a cluster whose machines can be broken and looked at from
// outside, without its API server.
type Inspectable interface {
	Machines
	// Nodes are the names of the workers.
	Nodes(ctx context.Context) ([]string, error)
	// ControlPlane is the name of the machine with the API server.
	ControlPlane() string
	// Boot describes the run of a machine that is on, and differs from that of
	// every earlier run; it is empty while the machine is off.
	Boot(ctx context.Context, name string) (string, error)
	// Unplugged reports whether a machine's network cable is pulled.
	Unplugged(ctx context.Context, name string) (bool, error)
	// ExecutorDir is where an executor of this cluster keeps its state. It goes
	// with the cluster.
	ExecutorDir() string
}

// Nodes implements Inspectable.
func (k *onKind) Nodes(ctx context.Context) ([]string, error) {
	out, err := k.run(ctx, nil, "kind", "get", "nodes", "--name", k.name)
	if err != nil {
		return nil, err
	}
	var workers []string
	for _, name := range strings.Fields(out) {
		if name != k.ControlPlane() {
			workers = append(workers, name)
		}
	}
	return workers, nil
}

// ControlPlane implements Inspectable.
func (k *onKind) ControlPlane() string { return k.name + "-control-plane" }

// Boot implements Inspectable.
func (k *onKind) Boot(ctx context.Context, name string) (string, error) {
	out, err := k.run(ctx, nil, "docker", "inspect", "--format", "{{.State.Pid}} {{.State.StartedAt}}", name)
	if err != nil {
		return "", err
	}
	pid, started, ok := strings.Cut(strings.TrimSpace(out), " ")
	switch {
	case !ok:
		return "", fmt.Errorf("docker inspect %s printed %.80q, not a process and when it started", name, out)
	case pid == "0":
		return "", nil
	}
	return fmt.Sprintf("process %s, started %s", pid, started), nil
}

// Unplugged implements Inspectable.
func (k *onKind) Unplugged(ctx context.Context, name string) (bool, error) {
	out, err := k.run(ctx, nil, "docker", "exec", name, "sh", "-c", "iptables -w -S INPUT")
	return strings.Contains(out, "ORDERGRID-CUT"), err
}

// ExecutorDir implements Inspectable.
func (k *onKind) ExecutorDir() string { return k.dir + "/executor" }
