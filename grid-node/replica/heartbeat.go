package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// A node sends another the beacons of all its partitions in one frame, a Heartbeat. Vitals
// then give and take rows of it, in place of Tick and Receive; what they mean is the same:
//
//	v.Beats(now, rows)      // every Timing.Beacon, of all Vitals at once
//	v.Hear(now, sent, &row) // a row of a Heartbeat that came
//	v.Answered(now, echo, &row)

// Beat is a row for the node at an address.
type Beat struct {
	Address string
	wire.HeartbeatRow
}

// Beats appends a row for every peer. All of them are sent at this time, or none.
func (v *Vitals) Beats(now Time, dst []Beat) []Beat {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mode != vitalLeads || v.stuck(now) {
		return dst
	}
	for i := range v.peers {
		p := &v.peers[i]
		p.sentNs = max(p.sentNs, now.Mono)
		v.count.Sent++
		dst = append(dst, Beat{p.address, wire.HeartbeatRow{
			PeerHead: wire.PeerHead{Epoch: v.epoch, From: v.self.Boot, To: p.boot}, CommitSeq: v.commit, Partition: v.part, Flags: v.flags}})
	}
	return dst
}

// Hear takes in a row of what was sent at sentNs, by the sender's clock. It returns the row
// of the answer; false: there is none.
func (v *Vitals) Hear(now Time, sentNs int64, row *wire.HeartbeatRow) (answer wire.HeartbeatRow, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.note(now, &wire.Beacon{PeerHead: row.PeerHead, CommitSeq: row.CommitSeq, SentNs: sentNs, Flags: row.Flags}) {
		return answer, false
	}
	return wire.HeartbeatRow{PeerHead: wire.PeerHead{Epoch: v.epoch, From: v.self.Boot, To: v.primary.Boot}, Partition: v.part, Flags: v.leaving}, true
}

// Answered takes in a row of the answer to what was sent at echoNs.
func (v *Vitals) Answered(now Time, echoNs int64, row *wire.HeartbeatRow) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer(now, &wire.PeerAck{PeerHead: row.PeerHead, EchoNs: echoNs}, row.Flags)
}
