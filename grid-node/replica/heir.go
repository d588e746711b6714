package replica

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// An heir is a process with the journal of a former one that the record may still name. It
// has the boot id of that process, because the log is what a member is, and nothing else of
// it: it acts in no epoch in which its predecessor may have acted. It acknowledges nothing,
// answers no heartbeat, and becomes a primary only by a change that it has proposed
// itself. A process that lives and is primary drops it, and it joins anew.
//
// If all members were lost at once their heirs agree on one. Every one of them has all that
// was acknowledged, so any would do; the one with the longest log goes first, because the
// others then have nothing that it lacks. Nothing rests on that agreement: the arbiter
// accepts one.

// HeirRefused begins the reason with which an heir restarts that the record does not name:
// as a learner, with the log that it has.
const HeirRefused = "the journal is not of the last in-sync set"

// KeepsLog reports whether the next replica of a process, after one that restarted for this
// reason, may begin with the log of its journal: a primary compares it. The reason is the
// text of ActionRestart.
func KeepsLog(reason string) bool {
	return restartedFor(reason, HeirRefused) || Removed(reason) || restartedFor(reason, releasedReason)
}

// Removed reports whether a replica restarted because a configuration dropped it. The
// reason is the text of ActionRestart.
func Removed(reason string) bool { return restartedFor(reason, removedReason) }

// restartedFor reports whether the text of an ActionRestart, which names the partition
// first, gives that reason.
func restartedFor(text, reason string) bool { return strings.Contains(text, ": "+reason) }

const (
	removedReason  = "removed from inSync"
	releasedReason = "released: "
)

// heir is the state of an heir.
type heir struct {
	active  bool
	since   int64 // its first tick
	heardAt int64 // when the primary of the epoch last sent
	toldAt  int64 // when the others were last told
	offers  []offer
}

// offer is what the heir of another member has.
type offer struct {
	boot, epoch, seq uint64
}

// inherits reports whether a configuration is one that this heir did not propose: its
// predecessor may have acted in it.
func (r *Replica) inherits(c *Config, own string) bool {
	return r.heir.active && c.Has(r.self.Boot) && c.ChangeID != own
}

// refuseHeir ends an heir that the record does not name.
func (r *Replica) refuseHeir(c *Config) {
	if r.leaving { // its journal stays
		r.role, r.drained = RoleStopped, true
		r.out.add(Action{Kind: ActionStatus})
		r.out.add(Action{Kind: ActionDrained})
		return
	}
	r.restart(fmt.Sprintf("%s: it is of %s, and the record is %s", HeirRefused, r.self.ID, c))
}

// staysHeir begins to wait again, in another epoch of its predecessor.
func (r *Replica) staysHeir() {
	r.role = RoleFenced
	r.heir.heardAt, r.heir.toldAt = r.now.Mono, 0
	r.freshAt = 0
	r.askConfig()
}

// tickHeir tells the others what this heir has, and takes over when it may.
func (r *Replica) tickHeir() {
	h := &r.heir
	if !h.active || r.prop.active() || r.leaving {
		return
	}
	if h.since == 0 {
		h.since = r.now.Mono
	}
	if r.now.Mono-h.toldAt >= int64(r.opt.Timing.Retry) {
		h.toldAt = r.now.Mono
		r.offer()
	}
	if r.freshAt == 0 || r.older || r.regressed != nil {
		r.readConfigEvery(int64(r.opt.Timing.Retry))
		return
	}
	if !r.goesFirst() {
		return
	}
	last, _ := r.store.Last()
	r.alarm(AlarmTakeOver, fmt.Sprintf("the journal of member %s of epoch %d holds %d entries, and no process that lives is primary: proposing epoch %d", r.self.ID, r.epoch, last, r.epoch+1))
	r.propose(purposeTakeOver, []Member{r.self})
}

// offer tells the other members of the epoch what is here: a heir of one compares it, a
// primary that lives drops this member.
func (r *Replica) offer() {
	last, hash := r.store.Last()
	for i := range r.cfg.InSync {
		to := &r.cfg.InSync[i]
		if to.Boot == r.self.Boot {
			continue
		}
		m := wire.Join{PeerHead: r.head(to.Boot), LastSeq: last, LastHash: hash, Member: []byte(r.self.ID), Address: []byte(r.self.Address), Flags: wire.FlagHeir}
		off := len(r.out.buf)
		r.out.buf = wire.AppendJoin(r.out.buf, r.part, &m)
		r.out.send(to.Address, off, nil)
	}
}

// goesFirst reports whether this heir is the one to take over, by what it knows of the
// others. It waits for those that have more, or have not been heard, for so long: one that
// has not been heard may be a primary that lives, cannot reach this heir, and has a lease
// that the predecessor granted in its last moment. One that is an heir of this epoch has
// none; of an earlier one it may be a primary by now.
func (r *Replica) goesFirst() bool {
	waited := r.now.Mono - max(r.heir.since, r.heir.heardAt)
	wait := int64(r.journal.opt.HeirWait)
	for i := range r.cfg.InSync {
		m := &r.cfg.InSync[i]
		if m.Boot == r.self.Boot {
			continue
		}
		o := r.offerOf(m.Boot)
		switch {
		case o == nil || o.epoch < r.epoch:
			if waited < wait {
				return false
			}
		case o.epoch > r.epoch:
			r.readConfig()
			return false
		case r.precedes(m, o) && waited < 2*wait:
			return false
		}
	}
	return true
}

// precedes reports whether the heir of another member should take over: it has more, or as
// much and was the primary, or has the smaller id.
func (r *Replica) precedes(m *Member, o *offer) bool {
	last, _ := r.store.Last()
	switch {
	case o.seq != last:
		return o.seq > last != mutant(mutShorterWins)
	case m.Boot == r.cfg.Primary.Boot || r.self.Boot == r.cfg.Primary.Boot:
		return m.Boot == r.cfg.Primary.Boot
	}
	return m.Boot < r.self.Boot
}

func (r *Replica) offerOf(boot uint64) *offer {
	for i := range r.heir.offers {
		if r.heir.offers[i].boot == boot {
			return &r.heir.offers[i]
		}
	}
	return nil
}

// heirSpoke handles what an heir has told.
func (r *Replica) heirSpoke(member *Member, m *wire.Join) {
	switch {
	case r.heir.active && r.cfg != nil && r.cfg.Has(m.From):
		o := r.offerOf(m.From)
		if o == nil {
			r.heir.offers = append(r.heir.offers, offer{})
			o = &r.heir.offers[len(r.heir.offers)-1]
		}
		*o = offer{boot: m.From, epoch: m.Epoch, seq: m.LastSeq}
	case r.role != RolePrimary:
		r.count.StaleFrames++
	case !r.cfg.Has(m.From):
		r.sendConfig(&peer{Member: *member})
	case m.Epoch == r.epoch:
		if p := r.peer(m.From); p != nil { // its memory is gone, whatever it holds: it does not act in this epoch
			p.reset()
			r.dropSilent()
		}
	}
}

// heardByHeir notes that a process leads the epoch of this heir.
func (r *Replica) heardByHeir(h *wire.PeerHead) {
	if r.heir.active && r.cfg != nil && h.To == r.self.Boot && h.From == r.cfg.Primary.Boot && h.Epoch == r.epoch {
		r.heir.heardAt = r.now.Mono
	}
}
