package packets

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/e2e/cluster/executor/nfqueue"
)

// dropper drops every packet it is given. Dropped here, the sender is not
// notified: an iptables DROP would make send return an error, which a network
// never does.
type dropper struct {
	queue *nfqueue.Queue
	tally *tally
}

func (d *dropper) take(p nfqueue.Packet) {
	if d.queue.Drop(p.ID) != nil {
		d.tally.failed.Add(1)
		return
	}
	d.tally.dropped.Add(1)
}

func (d *dropper) stop() {}

// damager turns one bit behind the IP header of every packet it is given. The
// packet still arrives, and its checksum is wrong.
type damager struct {
	queue *nfqueue.Queue
	tally *tally
}

func (d *damager) take(p nfqueue.Packet) {
	start := headerLength(p.Content)
	if start >= len(p.Content) {
		_ = d.queue.Accept(p.ID) // nothing behind the header to damage
		d.tally.failed.Add(1)
		return
	}
	damage(p.Content[start:])
	if d.queue.AcceptAs(p.ID, p.Content) != nil {
		d.tally.failed.Add(1)
		return
	}
	d.tally.changed.Add(1)
}

func (d *damager) stop() {}

func damage(content []byte) {
	content[rand.N(len(content))] ^= 1 << rand.N(8)
}

// headerLength of an IPv4 packet, or its whole length if it is none.
func headerLength(packet []byte) int {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return len(packet)
	}
	return int(packet[0]&15) * 4
}
