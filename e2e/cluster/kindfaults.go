package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Faults on kind's nodes, which are containers of Docker.

// KillNode implements Machines.
func (k *onKind) KillNode(ctx context.Context, name string) error {
	return k.onNode(ctx, name, "docker", "kill", name)
}

// StartNode implements Machines.
func (k *onKind) StartNode(ctx context.Context, name string) error {
	if err := k.onNode(ctx, name, "docker", "start", name); err != nil {
		return err
	}
	_, err := k.run(ctx, nil, "docker", "exec", name, "sh", "-c", waitReady)
	return err
}

// waitReady runs in a kind node, whose kubelet has a client configuration.
const waitReady = `until kubectl --kubeconfig /etc/kubernetes/kubelet.conf wait --for=condition=Ready "node/$(hostname)" --timeout=120s; do sleep 1; done`

// A cut node drops everything at its interface. Taking the interface down
// would lose the addresses and routes Docker gave it.
const (
	cutScript = `iptables -w -N ORDERGRID-CUT 2>/dev/null || exit 0
iptables -w -A ORDERGRID-CUT -j DROP
iptables -w -I INPUT -i eth0 -j ORDERGRID-CUT
iptables -w -I FORWARD -i eth0 -j ORDERGRID-CUT
iptables -w -I FORWARD -o eth0 -j ORDERGRID-CUT
iptables -w -I OUTPUT -o eth0 -j ORDERGRID-CUT`
	healScript = `iptables -w -n -L ORDERGRID-CUT >/dev/null 2>&1 || exit 0
iptables -w -D INPUT -i eth0 -j ORDERGRID-CUT
iptables -w -D FORWARD -i eth0 -j ORDERGRID-CUT
iptables -w -D FORWARD -o eth0 -j ORDERGRID-CUT
iptables -w -D OUTPUT -o eth0 -j ORDERGRID-CUT
iptables -w -F ORDERGRID-CUT
iptables -w -X ORDERGRID-CUT`
)

// CutNode implements Machines.
func (k *onKind) CutNode(ctx context.Context, name string) error {
	return k.onNode(ctx, name, "docker", "exec", name, "sh", "-ec", cutScript)
}

// HealNode implements Machines.
func (k *onKind) HealNode(ctx context.Context, name string) error {
	return k.onNode(ctx, name, "docker", "exec", name, "sh", "-ec", healScript)
}

func (k *onKind) onNode(ctx context.Context, name string, args ...string) error {
	if _, err := k.run(ctx, nil, args...); err != nil {
		return fmt.Errorf("node %s of kind cluster %s (see: kind get nodes --name %s): %w", name, k.name, k.name, err)
	}
	return nil
}

// Exec implements Machines.
func (k *onKind) Exec(ctx context.Context, name string, args []string) error {
	cmd := exec.CommandContext(ctx, "docker", append([]string{"exec", "-i", name}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
