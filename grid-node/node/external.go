package node

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Clients outside the cluster reach neither pod addresses nor names of Services. They use
// a port of their own (Config.External), so the node knows to give them addresses
// reachable from outside: the operator keeps them in the records. A pod without such an
// address is listed without one, and is not dialled.

// doorExternal is the transport's number of Config.External, which is listened on second.
const doorExternal = 1

// external is where clients outside reach the grid's pods.
type external struct {
	said []arbiter.ExternalAddress // as the record has it
	of   map[string]string         // address by pod
}

// observeExternal adopts the addresses in the record of the first partition.
func (d *directory) observeExternal(s *arbiter.Spec) {
	if d.cfg.External == "" || s.Replicas == 0 || s.Partition != 0 || slices.Equal(s.External, d.outside.said) {
		return
	}
	d.outside = externalOf(s.External)
	d.log.Info("addresses for clients outside", "pods", len(d.outside.of))
}

func externalOf(said []arbiter.ExternalAddress) external {
	e := external{said: said, of: make(map[string]string, len(said))}
	for _, a := range said {
		e.of[a.Pod] = a.Address
	}
	return e
}

// address is that of a member's pod, empty if none is known.
func (e *external) address(member []byte) []byte {
	pod, _, err := wire.ParseMemberID(string(member))
	if err != nil {
		return nil
	}
	return []byte(e.of[pod])
}

// translate makes a table one for clients outside.
func (e *external) translate(t *wire.Table) {
	for i := range t.Parts {
		t.Parts[i].Members = slices.Clone(t.Parts[i].Members) // clients inside get the same ones
		for j := range t.Parts[i].Members {
			m := &t.Parts[i].Members[j]
			m.Address = e.address(m.Member)
		}
	}
}

// redirects translates the NotPrimary frames that were appended to out behind its first
// `before` bytes; all other frames have no address. They are rare, so the rest is copied.
func (e *external) redirects(out []byte, before int) []byte {
	for at := before; ; {
		frame, after, err := wire.Split(out[at:])
		if err != nil || frame == nil {
			return out
		}
		var m wire.NotPrimary
		if wire.FrameType(frame) != wire.TypeNotPrimary || wire.DecodeNotPrimary(frame, &m) != nil || len(m.Member) == 0 {
			at += len(frame)
			continue
		}
		m.Address = e.address(m.Member)
		rest := slices.Clone(after)
		anew := wire.AppendNotPrimary(nil, wire.FramePartition(frame), &m)
		out = append(append(out[:at], anew...), rest...)
		at += len(anew)
	}
}
