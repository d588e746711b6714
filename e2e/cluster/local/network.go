package local

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
)

// cable is the name of a machine's port on the switch. Names have at most 13
// bytes, see PlanNodes, to stay within the 15 of an interface name.
func cable(machine string) string { return "p-" + machine }

// mac is a machine's hardware address. It stays the same when the machine is
// started again, so neighbours need not notice.
func (p *Plan) mac(machine string) string {
	addr := p.machineAddr(machine).As4()
	return fmt.Sprintf("02:6f:67:%02x:%02x:%02x", addr[1], addr[2], addr[3])
}

// switchLinks are the commands inside the switch: the bridge, the cable to the
// host, and where the pods of each node are.
func (p *Plan) switchLinks() []string {
	lines := []string{
		"link set lo up",
		"link add bridge type bridge",
		"link set bridge address " + p.mac(switchName),
		"addr add " + onBridge(p.switchAddr()) + " dev bridge",
		"link set bridge up",
		"link set host master bridge",
		"link set host up",
	}
	for _, node := range p.Nodes {
		lines = append(lines, fmt.Sprintf("route replace %s via %s", p.nodePods(node), p.nodeAddr(node)))
	}
	return lines
}

// hostLinks are the commands on the host for its one interface.
func (p *Plan) hostLinks(switchPID int) []string {
	link := p.hostLink()
	return []string{
		fmt.Sprintf("link add %s type veth peer name host netns %d", link, switchPID),
		fmt.Sprintf("addr add %s dev %s", onBridge(p.hostAddr()), link),
		fmt.Sprintf("link set %s up", link),
	}
}

// hostRoutes are the host's ways in: to pods straight through their node, as
// they answer, and to services through the switch, which translates.
func (p *Plan) hostRoutes() []string {
	lines := []string{fmt.Sprintf("route replace %s via %s dev %s", p.serviceNetwork(), p.switchAddr(), p.hostLink())}
	for _, node := range p.Nodes {
		lines = append(lines, fmt.Sprintf("route replace %s via %s dev %s", p.nodePods(node), p.nodeAddr(node), p.hostLink()))
	}
	return lines
}

// portLinks are the commands inside the switch that plug a machine in.
func (p *Plan) portLinks(machine string, pid int) []string {
	port := cable(machine)
	return []string{
		fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %d", port, p.mac(machine), pid),
		fmt.Sprintf("link set %s master bridge", port),
		fmt.Sprintf("link set %s up", port),
	}
}

// machineLinks are the commands inside a machine once it is plugged in.
func (p *Plan) machineLinks(machine string) []string {
	lines := []string{
		"link set lo up",
		"addr add " + onBridge(p.machineAddr(machine)) + " dev eth0",
		"link set eth0 up",
		"route replace default via " + p.switchAddr().String(),
	}
	for _, node := range p.Nodes {
		if node.Name != machine {
			lines = append(lines, fmt.Sprintf("route replace %s via %s", p.nodePods(node), p.nodeAddr(node)))
		}
	}
	return lines
}

func onBridge(addr netip.Addr) string { return addr.String() + "/24" }

// connect wires a machine that has just been created.
func (p *Plan) connect(ctx context.Context, machine string, pid, switchPID int) error {
	if machine == switchName {
		_ = ipBatch(ctx, 0, []string{"link del " + p.hostLink()}) // of a switch that died
		if err := ipBatch(ctx, 0, p.hostLinks(pid)); err != nil {
			return err
		}
		if err := ipBatch(ctx, pid, p.switchLinks()); err != nil {
			return err
		}
		return ipBatch(ctx, 0, p.hostRoutes())
	}
	_ = ipBatch(ctx, switchPID, []string{"link del " + cable(machine)}) // the kernel may not have got round to it
	if err := ipBatch(ctx, switchPID, p.portLinks(machine, pid)); err != nil {
		return err
	}
	return ipBatch(ctx, pid, p.machineLinks(machine))
}

// cutPorts tells which machines' ports on the switch are switched off.
func cutPorts(ctx context.Context, switchPID int) (map[string]bool, error) {
	args := []string{"-t", fmt.Sprint(switchPID), "-n", "--", "ip", "-json", "link", "show"}
	out, err := run(ctx, nil, "nsenter", args...)
	if err != nil {
		return nil, err
	}
	return parseCutPorts([]byte(out))
}

func parseCutPorts(jsonLinks []byte) (map[string]bool, error) {
	var links []struct {
		Name  string   `json:"ifname"`
		Flags []string `json:"flags"`
	}
	if err := json.Unmarshal(jsonLinks, &links); err != nil {
		return nil, fmt.Errorf("reading the switch's ports: %w", err)
	}
	cut := map[string]bool{}
	for _, link := range links {
		up := false
		for _, flag := range link.Flags {
			up = up || flag == "UP"
		}
		cut[link.Name] = !up
	}
	return cut, nil
}
