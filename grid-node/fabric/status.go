// Package fabric finds the address of a pod on a second network, from the pod annotation
// k8s.v1.cni.cncf.io/network-status that Multus writes.
//
// A grid node reads the annotation before it registers anywhere, the operator reads the
// same annotation of its pods; both must find the same address.
package fabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
)

// Limits of the input. Kubernetes allows 256 KiB for all annotations of an object; a pod
// with more networks than this is not ours.
const (
	maxStatus      = 256 << 10
	maxAttachments = 64
	maxAddresses   = 64
	maxName        = 64 + 1 + 253 // namespace/name
	maxInterface   = 15           // of the kernel
)

// Attachment is one network of the pod.
type Attachment struct {
	// Network is namespace/name of the NetworkAttachmentDefinition; of the pod network,
	// the name in the CNI configuration.
	Network string
	// Interface is the name of the interface inside the pod; "" if Multus does not say.
	Interface string
	// Addresses in the order of the annotation.
	Addresses []netip.Addr
}

// ParseStatus parses the annotation, which is untrusted input: any account that may write
// pods can set it.
func ParseStatus(value []byte) ([]Attachment, error) {
	if len(value) > maxStatus {
		return nil, fmt.Errorf("%d bytes, allowed: %d", len(value), maxStatus)
	}
	var raw []struct {
		Name      string   `json:"name"`
		Interface string   `json:"interface"`
		IPs       []string `json:"ips"`
	}
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, fmt.Errorf("not a list of networks: %w", err)
	}
	if len(raw) > maxAttachments {
		return nil, fmt.Errorf("%d networks, allowed: %d", len(raw), maxAttachments)
	}
	list := make([]Attachment, 0, len(raw))
	for i, r := range raw {
		switch {
		case !plain(r.Name, maxName):
			return nil, fmt.Errorf("network %d is named %.80q, allowed: up to %d printable characters", i, r.Name, maxName)
		case !plain(r.Interface, maxInterface) || strings.Contains(r.Interface, "/"):
			return nil, fmt.Errorf("network %q has interface %.80q, allowed: up to %d printable characters", r.Name, r.Interface, maxInterface)
		case len(r.IPs) > maxAddresses:
			return nil, fmt.Errorf("network %q has %d addresses, allowed: %d", r.Name, len(r.IPs), maxAddresses)
		}
		a := Attachment{Network: r.Name, Interface: r.Interface}
		for _, text := range r.IPs {
			addr, err := parseAddress(text)
			if err != nil {
				return nil, fmt.Errorf("network %q: %w", r.Name, err)
			}
			a.Addresses = append(a.Addresses, addr)
		}
		list = append(list, a)
	}
	return list, nil
}

// parseAddress accepts an address, or one with a prefix length as some plugins write it.
func parseAddress(text string) (netip.Addr, error) {
	if len(text) > 64 {
		return netip.Addr{}, fmt.Errorf("address %.64q..., allowed: an IP address", text)
	}
	addr, err := netip.ParseAddr(text)
	if p, bad := netip.ParsePrefix(text); bad == nil {
		addr, err = p.Addr(), nil
	}
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("address %q, allowed: an IP address without a zone", text)
	}
	return addr.Unmap(), nil
}

// plain reports whether s can stand in a log line and in a label of a metric.
func plain(s string, limit int) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// ErrNotAttached means that the annotation does not list the network, or not yet.
var ErrNotAttached = errors.New("not attached")

// Find returns the address on the network, namespace/name, at the named interface. IPv4 is
// preferred. The error wraps ErrNotAttached where waiting may help.
func Find(list []Attachment, network, device string) (netip.Addr, error) {
	var others []string
	for _, a := range list {
		if a.Network != network || a.Interface != device {
			others = append(others, strings.TrimSuffix(a.Network+" on "+a.Interface, " on "))
			continue
		}
		return pick(&a)
	}
	return netip.Addr{}, fmt.Errorf("%w: network %s on interface %s is not among the networks of this pod (%s)", ErrNotAttached, network, device, listed(others))
}

func pick(a *Attachment) (best netip.Addr, err error) {
	for _, addr := range a.Addresses {
		if !addr.IsGlobalUnicast() { // not loopback, link-local or multicast
			continue
		}
		if !best.IsValid() || addr.Is4() && !best.Is4() {
			best = addr
		}
	}
	if !best.IsValid() {
		return best, fmt.Errorf("network %s gave interface %s no address that others can reach; its configuration needs an IPAM plugin such as host-local or whereabouts", a.Network, a.Interface)
	}
	return best, nil
}

func listed(names []string) string {
	const few = 4
	if len(names) == 0 {
		return "none"
	}
	if len(names) > few {
		names = append(names[:few:few], fmt.Sprintf("%d more", len(names)-few))
	}
	return strings.Join(names, ", ")
}
