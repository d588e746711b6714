package machine

import "github.com/cespare/xxhash/v2"

// digest is added to that of the machine.
func (g *Guard) digest() uint64 {
	if g == nil {
		return 0
	}
	return mix(g.core.Digest(), g.sum, uint64(g.day)<<8^20^uint64(b2u(g.named))<<5)
}

func (g *Guard) recount() uint64 {
	if g == nil {
		return 0
	}
	sum := g.profileSum()
	for i := range g.kills {
		sum += g.kills[i].sum()
	}
	for i := range g.names {
		for n, name := range g.names[i].list {
			sum += nameSum(i, uint32(n+1), name)
		}
	}
	for n, symbol := range g.listed {
		sum += nameSum(4, uint32(n+1), symbol)
	}
	for n := range g.sessions {
		sum += g.sessions[n].sum(uint32(n + 1))
	}
	return mix(g.core.Recount(), sum, uint64(g.day)<<8^20^uint64(b2u(g.named))<<5)
}

func nameSum(list int, n uint32, name string) uint64 {
	return mix(xxhash.Sum64String(name), uint64(list)<<32|uint64(n), 21)
}

func (s *guardSession) sum(n uint32) uint64 {
	return mix(s.id[0], s.id[1], uint64(n)<<32|uint64(s.slot))
}

func (d *Decree) sum() uint64 {
	return mix(xxhash.Sum64String(d.Who), xxhash.Sum64String(d.Why), mix(uint64(d.TimeNs), d.Entry, 22))
}

func (k *Kill) sum() uint64 {
	s := mix(k.Decree.sum(), xxhash.Sum64String(k.Name), uint64(k.Scope))
	if k.Complete != 0 { // in releases before none is
		s = mix(s, k.Complete, k.Cancelled)
	}
	return s
}

func (g *Guard) profileSum() uint64 {
	if g.text == nil {
		return 0
	}
	return mix(g.at.sum(), xxhash.Sum64(g.text), 23)
}
