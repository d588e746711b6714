package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

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

// Hear handles a row of a Heartbeat. It returns the row of the answer; false: none.
func (v *Vitals) Hear(now Time, row *wire.HeartbeatRow) (answer wire.HeartbeatRow, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.note(now, row) {
		return answer, false
	}
	return wire.HeartbeatRow{PeerHead: wire.PeerHead{Epoch: v.epoch, From: v.self.Boot, To: v.primary.Boot}, Partition: v.part, Flags: v.leaving}, true
}

// Answered handles a row of the answer to what was sent at echoNs: a member is alive, and
// has not left the epoch.
func (v *Vitals) Answered(now Time, echoNs int64, row *wire.HeartbeatRow) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.peer(row.From)
	if !v.present(&row.PeerHead) || v.mode != vitalLeads || p == nil {
		v.count.Stale++
		return
	}
	v.count.Answered++
	p.heardAt = max(p.heardAt, now.Mono)
	p.echoNs = max(p.echoNs, min(echoNs, p.sentNs)) // an answer cannot precede its request
	if mutant(mutEchoUnclamped) {
		p.echoNs = max(p.echoNs, echoNs)
	}
	if mutant(mutLeaseFromReceipt) {
		p.echoNs = now.Mono
	}
	p.flags = row.Flags
}
