package fabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"
)

// Options say which network is meant and what to do without it.
type Options struct {
	// Network is namespace/name of a NetworkAttachmentDefinition.
	Network string
	// Interface is its name inside the pod, as the pod's annotation asks for it.
	Interface string
	// StatusFile holds the annotation. It is a volume of the downward API: the kubelet
	// writes it before Multus has made the networks, and updates it a moment later. An
	// environment variable would stay empty.
	StatusFile string
	// Wait is how long to wait for the annotation.
	Wait time.Duration
	// Fallback is the address to use when there is none on the network; invalid: none.
	Fallback netip.Addr
}

// ErrNoAddress means that the pod is not on the required network.
var ErrNoAddress = errors.New("no address on the fabric")

// Check names the first invalid option.
func (o *Options) Check() error {
	switch {
	case o.Interface == "" || len(o.Interface) > maxInterface:
		return fmt.Errorf("--fabric-interface: value %q, allowed: the name of an interface, 1..%d characters", o.Interface, maxInterface)
	case o.StatusFile == "":
		return errors.New(`--fabric-network-status: value "", allowed: the file with the annotation k8s.v1.cni.cncf.io/network-status`)
	case o.Wait < 0:
		return fmt.Errorf("--fabric-wait: value %v, allowed: 0s or more", o.Wait)
	}
	return nil
}

// poll is the interval of reading the file; the kubelet takes about a second.
const poll = 100 * time.Millisecond

// Resolve waits for the annotation and returns the pod's address on the network. onFabric
// is false for the fallback. The interface is checked to have the address.
func Resolve(ctx context.Context, o Options, log *slog.Logger) (addr netip.Addr, onFabric bool, err error) {
	return o.resolve(ctx, log, interfaceHas)
}

func (o *Options) resolve(ctx context.Context, log *slog.Logger, has func(device string, addr netip.Addr) error) (netip.Addr, bool, error) {
	if err := o.Check(); err != nil {
		return netip.Addr{}, false, err
	}
	begun := time.Now()
	for {
		addr, err := o.look()
		if err == nil {
			err = has(o.Interface, addr)
		}
		if err == nil {
			log.Info("the data port is on the fabric", "network", o.Network, "interface", o.Interface, "address", addr, "waited", time.Since(begun).Round(time.Millisecond))
			return addr, true, nil
		}
		if time.Since(begun) < o.Wait && errors.Is(err, ErrNotAttached) {
			select {
			case <-ctx.Done():
				return netip.Addr{}, false, ctx.Err()
			case <-time.After(poll):
			}
			continue
		}
		if !o.Fallback.IsValid() {
			return netip.Addr{}, false, fmt.Errorf("%w: %w; is Multus on this Kubernetes node, does the NetworkAttachmentDefinition %s exist, "+
				"and is it attached as %s? spec.fabric.fallback PodNetwork would use the pod network instead", ErrNoAddress, err, o.Network, o.Interface)
		}
		log.Warn("the data port falls back to the pod network", "network", o.Network, "interface", o.Interface, "address", o.Fallback, "reason", err)
		return o.Fallback, false, nil
	}
}

func (o *Options) look() (netip.Addr, error) {
	value, err := os.ReadFile(o.StatusFile)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--fabric-network-status: %w", err)
	}
	if len(value) == 0 {
		return netip.Addr{}, fmt.Errorf("%w: the annotation k8s.v1.cni.cncf.io/network-status is empty", ErrNotAttached)
	}
	list, err := ParseStatus(value)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("annotation k8s.v1.cni.cncf.io/network-status: %w", err)
	}
	return Find(list, o.Network, o.Interface)
}

// interfaceHas returns nil if the interface of this network namespace has the address: an
// account that may write annotations must not be able to make a node register another's
// address. And a pod whose Kubernetes node lost power comes back with another address
// while its annotation still has the old one: that is worth a retry.
func interfaceHas(device string, addr netip.Addr) error {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return fmt.Errorf("interface %s: %w", device, err)
	}
	addresses, err := i.Addrs()
	if err != nil {
		return fmt.Errorf("interface %s: %w", device, err)
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == addr {
			return nil
		}
	}
	return fmt.Errorf("%w: interface %s has %v, not the address %s of the annotation", ErrNotAttached, device, addresses, addr)
}
