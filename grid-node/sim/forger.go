package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/frametext"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// forger is a stranger that every node takes for a node: it has the key of the grid, or
// the grid has none. It knows the record, all identities, and every log. In its own name
// it sends anything, to the end of the world. In the name of the primary it sends, among
// other faults, frames that would make a replica change its configuration or discard its
// log.
//
// It does not send what no receiver can distinguish from the truth: acknowledge entries in
// the name of a member, answer a beacon in its name, send entries that chain in the name
// of the primary, or take the place of an absent pod under its name. Against those only
// authentication of the sender helps (docs/replication.md, Words of peers).
type forger struct {
	w   *world
	rng *rand.Rand
	n   uint64 // frames so far
}

// forges lets a third of the worlds have one. It uses its own random source, so that it
// changes no other world.
func forges(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x666f72676572))
	if rng.IntN(3) == 0 {
		p.forges = rng
	}
}

func (w *world) scheduleForgery() {
	if w.profile.forges == nil {
		return
	}
	f := &forger{w: w, rng: w.profile.forges}
	f.schedule()
}

func (f *forger) schedule() {
	f.w.after(int64(f.rng.ExpFloat64()*float64(60*millisecond)), func() {
		if p := f.w.pods[f.rng.IntN(len(f.w.pods))].proc; p != nil && p.status.Config != nil && p.status.Config.Epoch > 0 {
			for range 1 + f.rng.IntN(4) {
				f.forge(p)
			}
		}
		f.schedule()
	})
}

// boot ids and pods of the stranger; its names sort before those of the pods, so that it
// may ask for the place of one.
func (f *forger) self() (boot uint64, id string) {
	boot = 0xbad0000 | f.n%16
	return boot, wire.FormatMemberID(fmt.Sprintf("Z%d", f.n%16), boot)
}

const forgerAddress = "10.0.0.99:7400"

// forge sends one frame to a process.
func (f *forger) forge(p *process) {
	w, c := f.w, p.status.Config
	f.n++
	boot, id := f.self()
	head := wire.PeerHead{Epoch: c.Epoch + uint64(f.rng.IntN(4)), From: boot, To: p.self.Boot}
	if w.profile.digests != nil && f.rng.IntN(4) == 0 && !w.healing && p.status.Role != replica.RolePrimary {
		w.faults.hit(faultForgedWord)
		f.send(p, f.digest(p))
		return
	}
	if f.rng.IntN(3) == 0 && !w.healing && p.status.Role != replica.RolePrimary {
		head.From = c.Primary.Boot
		w.faults.hit(faultForgedWord)
		f.send(p, f.word(p, head))
		return
	}
	w.faults.hit(faultForged)
	switch f.rng.IntN(8) {
	case 0, 1:
		f.send(p, f.newConfig(p, head))
	case 2:
		for range 1 + f.rng.IntN(8) { // of a crowd
			f.n++
			head.From, id = f.self()
			f.send(p, wire.AppendJoin(nil, partition, &wire.Join{PeerHead: head, LastSeq: uint64(f.rng.IntN(3)), Member: []byte(id), Address: []byte(forgerAddress)}))
		}
	case 3:
		head.From |= 0x20000 // one that has not asked to join: a learner that acknowledges is a learner
		f.send(p, wire.AppendPrepareAck(nil, partition, &wire.PrepareAck{PeerHead: head, StoredSeq: p.status.LastSeq, Hash: p.st.HashAt(p.status.LastSeq)}))
	case 4:
		f.beat(p, wire.TypeHeartbeatAck, 1<<60, wire.HeartbeatRow{PeerHead: head})
	case 5:
		f.beat(p, wire.TypeHeartbeat, 0, wire.HeartbeatRow{PeerHead: head, CommitSeq: p.status.LastSeq})
	case 6:
		f.send(p, wire.AppendNack(nil, partition, &wire.Nack{PeerHead: head, Expected: 1}))
	default:
		f.send(p, wire.AppendJoinReply(nil, partition, &wire.JoinReply{PeerHead: head, Code: wire.JoinDiverged}))
	}
}

// word sends a frame in the name of the primary.
func (f *forger) word(p *process, head wire.PeerHead) []byte {
	switch f.rng.IntN(4) {
	case 0:
		head.Epoch = p.status.Config.Epoch
		code := []uint16{wire.JoinReleased, wire.JoinDiverged, wire.JoinTruncated}[f.rng.IntN(3)]
		return wire.AppendJoinReply(nil, partition, &wire.JoinReply{PeerHead: head, Code: code, Text: []byte("forged")})
	case 1:
		head.Epoch = p.status.Config.Epoch
		return f.prepare(p, head)
	}
	return f.newConfig(p, head)
}

// digest claims that the primary has another state after the process's entries.
func (f *forger) digest(p *process) []byte {
	c := p.status.Config
	m := wire.Digest{PeerHead: wire.PeerHead{Epoch: c.Epoch, From: c.Primary.Boot, To: p.self.Boot}, Seq: p.status.LastSeq &^ 15, State: f.rng.Uint64(), Form: machine.DigestForm}
	if m.Seq > p.status.FreedSeq {
		m.Hash = p.st.HashAt(m.Seq)
	}
	return wire.AppendDigest(nil, partition, &m)
}

// prepare carries an entry that does not chain, or is not the one stored.
func (f *forger) prepare(p *process, head wire.PeerHead) []byte {
	seq := p.status.LastSeq + 1
	if held := p.status.LastSeq - p.status.FreedSeq; held > 0 && f.rng.IntN(2) == 0 {
		seq -= 1 + uint64(f.rng.Int64N(int64(min(held, 20))))
	}
	e := order.Entry{Size: order.HeaderSize + 16, Kind: order.KindNoop, Seq: seq, PrevHash: 0xbad, Epoch: 1}
	entry := make([]byte, e.Size)
	e.Put(entry)
	return wire.AppendPrepare(nil, partition, &wire.Prepare{PeerHead: head, Entries: entry})
}

// newConfig announces the partition as another's: the stranger's, the receiver's, or
// nearly as it was.
func (f *forger) newConfig(p *process, head wire.PeerHead) []byte {
	c := p.status.Config
	head.Epoch = c.Epoch + 1 + uint64(f.rng.IntN(3)/2*f.rng.IntN(20))
	boot, id := f.self()
	m := wire.NewConfig{PeerHead: head, Lineage: c.Lineage + uint64(f.rng.IntN(8)/7), Version: []byte(f.w.api.rec.Version), ChangeID: fmt.Appendf(nil, "forged-%d", f.n)}
	add := func(mb replica.Member) {
		for i := range m.N {
			if string(m.Members[i].Member) == mb.ID {
				return
			}
		}
		if m.N < wire.MaxMembers {
			m.Members[m.N] = wire.TableMember{Address: []byte(mb.Address), Member: []byte(mb.ID)}
			m.N++
		}
	}
	stranger := replica.Member{ID: id, Boot: boot, Address: forgerAddress}
	switch f.rng.IntN(5) {
	case 0, 1: // the sender alone
		if head.From == boot {
			add(stranger)
		} else {
			add(c.Primary)
		}
	case 2: // handed over, to the receiver perhaps
		add(c.InSync[f.rng.IntN(len(c.InSync))])
		for _, mb := range c.InSync {
			add(mb)
		}
	case 3: // the stranger is in sync
		add(c.Primary)
		add(p.self)
		add(stranger)
	default: // the stranger leads
		add(stranger)
		add(p.self)
	}
	return wire.AppendNewConfig(nil, partition, &m)
}

// send delivers a frame to one process only.
func (f *forger) send(p *process, frame []byte) {
	w := f.w
	w.after(100*microsecond+f.rng.Int64N(millisecond), func() {
		if !p.alive {
			return
		}
		if w.trace != nil {
			w.logf("FORGED -> %s: %s", p.name, frametext.Peer(frame, nil))
		}
		p.deliver(func() { p.step(&replica.Event{Kind: replica.EventPeerFrame, Frame: frame}) })
	})
}

// beat sends a process a heartbeat; its answer goes to the forger.
func (f *forger) beat(p *process, t wire.Type, sentNs int64, row wire.HeartbeatRow) {
	w := f.w
	w.after(100*microsecond+f.rng.Int64N(millisecond), func() {
		if !p.alive || p.paused {
			return
		}
		w.logf("FORGED -> %s: %s", p.name, t)
		if now := p.pod.clock.time(w.now); t == wire.TypeHeartbeatAck {
			p.vitals.Answered(now, sentNs, &row)
		} else {
			p.vitals.Hear(now, &row)
		}
	})
}
