package nodefeatures

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// qdiscs adds queueing disciplines to the loopback device of the thread's network namespace, one
// after the other.
type qdiscs struct {
	handle *netlink.Handle
	index  int
}

func newQdiscs() (*qdiscs, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	lo, err := handle.LinkByName("lo")
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("loopback device: %w", err)
	}
	return &qdiscs{handle, lo.Attrs().Index}, nil
}

func (q *qdiscs) Close() { q.handle.Close() }

func (q *qdiscs) root() netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: q.index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
}

func (q *qdiscs) try(d netlink.Qdisc) error {
	switch err := q.handle.QdiscAdd(d); {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("the kernel has no queueing discipline %s", d.Type())
	case err != nil:
		return fmt.Errorf("queueing discipline %s: %w", d.Type(), err)
	}
	return q.handle.QdiscDel(d)
}

func (q *qdiscs) netem() error {
	return q.try(netlink.NewNetem(q.root(), netlink.NetemQdiscAttrs{Latency: 1000, Loss: 1}))
}

func (q *qdiscs) tbf() error {
	return q.try(&netlink.Tbf{QdiscAttrs: q.root(), Rate: 1 << 20, Limit: 1 << 20, Buffer: 1 << 16})
}

func (q *qdiscs) prio() error {
	return errors.Join(q.try(netlink.NewPrio(q.root())), q.try(&netlink.Sfq{QdiscAttrs: q.root()}))
}

// tryIPSets creates the kinds of set a NetworkChaos uses.
func tryIPSets() error {
	handle, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
	if err != nil {
		return fmt.Errorf("netlink netfilter: %w", err)
	}
	defer handle.Close()
	for _, kind := range []string{"hash:net", "hash:net,port", "list:set"} {
		if err := handle.IpsetCreate("trial", kind, netlink.IpsetCreateOptions{}); err != nil {
			return fmt.Errorf("ipset %s: %w", kind, err)
		}
		if err := handle.IpsetDestroy("trial"); err != nil {
			return fmt.Errorf("ipset %s: %w", kind, err)
		}
	}
	return nil
}

// From <linux/netfilter/nfnetlink_queue.h>; constants of the kernel's interface.
const (
	nfqnlMsgConfig   = 2
	nfqaCfgCmd       = 1
	nfqnlCfgCmdBind  = 1
	nfnlSubsysQueue  = 3
	nfnetlinkVersion = 0
)

// tryQueue binds queue 0 of the namespace, which is released with the socket.
func tryQueue() error {
	req := nl.NewNetlinkRequest(nfnlSubsysQueue<<8|nfqnlMsgConfig, unix.NLM_F_ACK)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: nfnetlinkVersion})
	req.AddData(nl.NewRtAttr(nfqaCfgCmd, []byte{nfqnlCfgCmdBind, 0, 0, unix.AF_INET}))
	if _, err := req.Execute(unix.NETLINK_NETFILTER, 0); err != nil {
		return fmt.Errorf("nfnetlink_queue: %w", err)
	}
	return nil
}
