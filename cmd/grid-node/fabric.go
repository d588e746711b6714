package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/fabric"
	"github.com/ordergrid/ordergrid/grid-node/node"
)

// fabricFlags configure the second network of the data port.
type fabricFlags struct {
	options             fabric.Options
	fallback, transport string
}

// Values of --fabric-fallback.
const (
	fallbackRefuse     = "refuse"
	fallbackPodNetwork = "pod-network"
)

func (f *fabricFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.options.Network, "fabric-network", "", "second network of the pod that orders and copies travel on, namespace/name of its NetworkAttachmentDefinition; its address replaces the one in --advertise; empty: none")
	fl.StringVar(&f.options.Interface, "fabric-interface", "fabric0", "name of the interface on --fabric-network")
	fl.StringVar(&f.options.StatusFile, "fabric-network-status", "", "file with the pod's annotation k8s.v1.cni.cncf.io/network-status, needed with --fabric-network")
	fl.DurationVar(&f.options.Wait, "fabric-wait", 30*time.Second, "how long to wait for --fabric-network in the annotation")
	fl.StringVar(&f.fallback, "fabric-fallback", fallbackRefuse, "without an address on --fabric-network: refuse (do not start) or pod-network (use --advertise as it is)")
	fl.StringVar(&f.transport, "fabric-transport", "tcp", "how bytes travel on --fabric-network: tcp")
}

// apply replaces the address in --advertise by the one on the fabric. It may wait for it.
func (f *fabricFlags) apply(ctx context.Context, cfg *node.Config) error {
	switch {
	case f.fallback != fallbackRefuse && f.fallback != fallbackPodNetwork:
		return fmt.Errorf("--fabric-fallback: value %q, allowed: %s, %s", f.fallback, fallbackRefuse, fallbackPodNetwork)
	case f.transport != "tcp":
		return fmt.Errorf("--fabric-transport: value %q, allowed: tcp", f.transport)
	case f.options.Network == "":
		return nil
	}
	advertise, err := netip.ParseAddrPort(cfg.Advertise)
	if err != nil {
		return fmt.Errorf("--advertise: value %q, allowed: ip:port, the address at which clients and peers reach this node", cfg.Advertise)
	}
	if f.fallback == fallbackPodNetwork {
		f.options.Fallback = advertise.Addr()
	}
	addr, onFabric, err := fabric.Resolve(ctx, f.options, cfg.Log)
	if err != nil {
		return err
	}
	if onFabric {
		cfg.Advertise = netip.AddrPortFrom(addr, advertise.Port()).String()
		cfg.Fabric = f.options.Network
		cfg.FabricOnly = f.fallback == fallbackRefuse
	}
	return nil
}
