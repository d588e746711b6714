package machine

import "github.com/cespare/xxhash/v2"

// digest is added to that of the machine.
func (b *Books) digest() uint64 {
	if b == nil {
		return 0
	}
	d := mix(b.sum+b.owners.sum+b.resting.sum, uint64(b.owners.last), 5)
	if b.engine != nil {
		d += mix(b.engine.Digest(), b.config.Seed, uint64(b.config.Work)<<32|uint64(b.config.Orders))
	}
	return d
}

func (b *Books) recount() uint64 {
	if b == nil {
		return 0
	}
	var sum uint64
	for n := range b.instruments {
		sum += b.instruments[n].sum(uint16(n))
	}
	sum += b.calendar.sum()
	for slot, owner := range b.owners.bySlot {
		if owner != 0 {
			sum += mix(uint64(slot), uint64(owner), 9)
		}
	}
	d := mix(sum+b.resting.recount(), uint64(b.owners.last), 5)
	if b.engine != nil {
		d += mix(b.engine.Recount(), b.config.Seed, uint64(b.config.Work)<<32|uint64(b.config.Orders))
	}
	return d
}

// sum covers what the engine has not: names and digits.
func (i *Instrument) sum(n uint16) uint64 {
	return mix(xxhash.Sum64String(i.Symbol), uint64(n)<<16|uint64(i.PriceDigits)<<8|uint64(i.QtyDigits), 6)
}
