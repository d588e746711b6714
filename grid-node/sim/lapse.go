package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// Half of the worlds with FIX sessions that match have sessions whose orders are cancelled when
// they are gone (docs/adr/0079). Their counterparties log out, and stay away for a while. I50:
// a session lapses only after a grace without interruption in which it had no connection at a
// primary that was one all the time; its orders do not trade after that entry; and once there
// is a primary for long enough, a session that is gone has none.

// lapseRand is nil for the worlds without such sessions.
func lapseRand(seed uint64) *rand.Rand {
	if rng := rand.New(rand.NewPCG(seed, 0x6c61707365730a)); rng.IntN(2) == 0 {
		return rng
	}
	return nil
}

// lapses returns mode and grace of a party's session: the last party has none.
func (p *fixParty) lapses() (mode order.LapseMode, graceMs uint16) {
	if p.w.profile.lapses == nil || p.id == fixParties-1 {
		return order.LapseNever, 0
	}
	return order.LapseOnLoss + order.LapseMode(p.id%2), 150
}

// refusedNow reports whether a Logon is treated as one whose number is too low: the session is
// opened for the answer, and its counterparty is not there.
func (p *fixParty) refusedNow() bool {
	mode, _ := p.lapses()
	return mode != order.LapseNever && !p.resetting && p.out > 2 && !p.finishing() && p.w.profile.lapses.IntN(10) == 0
}

// mayLapse is what a session's state says, by the rules of ADR 79.
func mayLapse(mode order.LapseMode, left, lapsed bool) bool {
	switch {
	case lapsed || mode == order.LapseNever:
		return false
	case mode == order.LapseOnLoss:
		return !left
	}
	return true
}

// seats is when a process was last seen to have the connection of a session, by slot, and by its
// monotonic clock, which it reads once a wake-up.
type seats struct {
	leads int64 // since when it is primary
	at    map[uint32]int64
}

// seeSeats notes which sessions have a connection at a primary.
func (w *world) seeSeats(p *process, st *replica.Status) {
	if w.profile.lapses == nil || st.Role != replica.RolePrimary {
		return
	}
	if p.status.Role != replica.RolePrimary || p.seats.at == nil {
		p.seats = seats{leads: p.clock.Mono, at: map[uint32]int64{}}
	}
	for slot := range uint32(p.r.FixSlots()) {
		if p.r.FixSeated(slot) {
			p.seats.at[slot] = p.clock.Mono
		}
	}
}

// checkLapse judges a lapse that a primary has just made.
func (w *world) checkLapse(p *process, seq uint64, entry []byte) {
	st := p.r.Status()
	if w.profile.lapses == nil || order.Kind(entry[4]) != order.KindFix || !order.IsLapse(order.Payload(entry)) ||
		st.Role != replica.RolePrimary || uint64(order.EpochOf(entry)) != st.Config.Epoch {
		return
	}
	for rest := order.Payload(entry); len(rest) > 0; {
		var r order.FixRecord
		rest = order.NextFix(rest, &r)
		_, grace := w.fix.parties[p.r.FixAt(r.Slot).ID[1]-1].lapses()
		if gone := p.clock.Mono - max(p.seats.leads, p.seats.at[r.Slot]); grace == 0 || gone < int64(grace)*millisecond {
			w.violation("I50", "%s cancels the orders of FIX session %d in entry %d, %d us after it last had a connection, or its primary began; its grace is %d ms", p.name, r.Slot, seq, gone/microsecond, grace)
			return
		}
		w.stats.Lapses++
	}
}

// checkLapses: a party that is gone for good has no orders after its grace, whichever process
// is primary then. Others trade no more meanwhile.
func (w *world) checkLapses() {
	if w.stopped || w.profile.lapses == nil {
		return
	}
	rng := w.profile.lapses
	party := w.fix.parties[rng.IntN(fixParties-1)]
	w.fix.quiet = true
	defer func() { w.fix.quiet = false }()
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	w.runUntil(w.now+300*millisecond, nil)
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.await("before a party goes,", w.converged)
	if w.stopped {
		return
	}
	primary := w.processOf(w.api.rec.Primary.Boot)
	w.logf("party %d is GONE", party.id)
	party.gone = true
	party.link.reset()
	for _, g := range w.fix.gateways { // connections that it left half-open: their gateways notice
		for _, d := range g.doors {
			if d.party == party {
				d.link.reset()
			}
		}
	}
	for slot := range uint32(primary.r.FixSlots()) {
		if s := primary.r.FixAt(slot); s.ID[1] == uint64(party.id+1) && s.CanLapse() && primary.r.FixRests(slot) > 0 {
			w.stats.LapsesAwaited++
		}
	}
	if rng.IntN(2) == 0 && len(w.api.rec.InSync) > 1 {
		pod := primary.pod
		primary.crash(true)
		w.after(50*millisecond, func() { w.restart(pod) })
	}
	w.await("of a party that is gone", func() string {
		p := w.processOf(w.api.rec.Primary.Boot)
		if p == nil || p.status.Role != replica.RolePrimary {
			return "no primary knows anything"
		}
		for slot := range uint32(p.r.FixSlots()) {
			if s := p.r.FixAt(slot); s.ID[1] == uint64(party.id+1) && p.r.FixRests(slot) > 0 && mayLapse(s.Mode, s.Left, false) {
				return "orders rest"
			}
		}
		return ""
	})
	party.gone = false
	w.await("after a party was gone,", w.converged)
}
