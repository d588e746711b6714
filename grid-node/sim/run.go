package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"

	"github.com/ordergrid/ordergrid/internal/linear"
)

// Stats of one run, or of many added up.
type Stats struct {
	Steps           uint64 // of replicas
	Acked           uint64 // orders whose acknowledgement reached a client
	Duplicates      uint64 // orders refused because their ClOrdID was there
	Refusals        uint64 // answers that reject an order for now
	Refused         uint64 // orders rejected and abandoned by their client
	Decided         uint64 // of those, refused by a function
	Killed          uint64 // orders that rested and were cancelled by a kill
	KillCounts      uint64 // answers that a kill is complete
	Profiles        uint64 // that came into force with their source
	Definitions     uint64 // of regions, likewise
	Phases          uint64 // of a calendar that books entered
	Auctioned       uint64 // trades in auctions
	Kills           uint64 // that a person was answered, with their ends
	Repeated        uint64 // acknowledged orders that were sent again and answered
	Ops             uint64 // operations checked by Porcupine
	Changes         uint64 // of the configuration
	Failovers       uint64 // of those, to another primary
	HandOvers       uint64 // of those, proposed by the primary itself
	Losses          uint64 // of those, with data loss accepted
	Discards        uint64 // replicas that discarded themselves
	Freed           uint64 // entries freed, on all replicas together
	Snapshots       uint64 // learners that began after freed entries
	Delivered       uint64 // entries that reached a subscriber
	Followed        uint64 // entries that reached a follower
	Diverged        uint64 // followers told that they hold another history
	Answers         uint64 // of whole questions to views
	AskedOther      uint64 // askers told that they hold another history
	SinkFenced      uint64 // writes the sink refused as of an older epoch
	FixExecuted     uint64 // reports of executions that left for FIX sessions
	FixCopies       uint64 // drop copies that were sent
	FixStates       uint64 // status requests that were answered with a state
	FixReports      uint64 // reports of FIX sessions that reached a counterparty
	FixHeld         uint64 // requests of gateways that were refused for now
	FixResent       uint64 // reports that were fetched from the log again
	FixOpened       uint64 // openings of FIX sessions
	Calls           uint64 // of functions of kind Compute, that were answered
	CallsFailed     uint64 // of those without a result
	CallsAwaited    uint64 // refusals since another copy has the function
	RegionOps       uint64 // changes of regions that were acknowledged
	RegionBatches   uint64 // likewise, of several keys
	RegionReads     uint64 // reads of regions that were answered
	RegionFailed    uint64 // conditions that did not hold
	Maps            uint64 // that were answered
	MapRows         uint64 // entries in those
	OrderMaps       uint64 // over orders that were answered
	OrderMapRows    uint64 // orders in those
	OrderMapsFreed  uint64 // that ended because entries were freed
	Executions      uint64 // records that reached a session
	Taped           uint64 // records that followers were streamed
	Books           uint64 // that were shown
	BookOrders      uint64 // books that clients had order by order
	BookStates      uint64 // of copies in the end
	Bands           uint64 // price bands that were moved, and orders for a price outside of one
	Banned          uint64
	FixMasses       uint64 // mass cancels of FIX sessions in the committed log
	Lapses          uint64 // FIX sessions whose orders were cancelled because they were gone
	LapsesAwaited   uint64 // of those, of a party that was gone in the end
	FixSwept        uint64 // orders of FIX sessions that mass cancels took out
	Fills           uint64 // trades in the committed log
	FunctionChanges uint64 // of functions in force, in all histories
	Records         uint64 // of functions that every copy calls, on all replicas together
	Simulated       int64  // nanoseconds
}

func (s *Stats) add(o *Stats) {
	s.Steps += o.Steps
	s.Acked += o.Acked
	s.Duplicates += o.Duplicates
	s.Refusals += o.Refusals
	s.Refused += o.Refused
	s.Decided += o.Decided
	s.Records += o.Records
	s.FunctionChanges += o.FunctionChanges
	s.Kills += o.Kills
	s.Killed += o.Killed
	s.KillCounts += o.KillCounts
	s.Profiles += o.Profiles
	s.Phases += o.Phases
	s.Auctioned += o.Auctioned
	s.Repeated += o.Repeated
	s.Ops += o.Ops
	s.Changes += o.Changes
	s.Failovers += o.Failovers
	s.HandOvers += o.HandOvers
	s.Losses += o.Losses
	s.Discards += o.Discards
	s.Freed += o.Freed
	s.Snapshots += o.Snapshots
	s.Delivered += o.Delivered
	s.Followed += o.Followed
	s.Diverged += o.Diverged
	s.Answers += o.Answers
	s.AskedOther += o.AskedOther
	s.SinkFenced += o.SinkFenced
	s.FixExecuted += o.FixExecuted
	s.FixCopies += o.FixCopies
	s.FixStates += o.FixStates
	s.FixReports += o.FixReports
	s.FixHeld += o.FixHeld
	s.FixResent += o.FixResent
	s.FixOpened += o.FixOpened
	s.Calls += o.Calls
	s.CallsFailed += o.CallsFailed
	s.CallsAwaited += o.CallsAwaited
	s.RegionOps += o.RegionOps
	s.RegionBatches += o.RegionBatches
	s.RegionReads += o.RegionReads
	s.RegionFailed += o.RegionFailed
	s.Maps += o.Maps
	s.MapRows += o.MapRows
	s.OrderMaps += o.OrderMaps
	s.OrderMapRows += o.OrderMapRows
	s.OrderMapsFreed += o.OrderMapsFreed
	s.Executions += o.Executions
	s.Taped += o.Taped
	s.Books += o.Books
	s.BookOrders += o.BookOrders
	s.BookStates += o.BookStates
	s.Bands, s.Banned = s.Bands+o.Bands, s.Banned+o.Banned
	s.Fills += o.Fills
	s.FixMasses += o.FixMasses
	s.FixSwept += o.FixSwept
	s.Lapses += o.Lapses
	s.LapsesAwaited += o.LapsesAwaited
	s.Simulated += o.Simulated
}

// Result of one seed.
type Result struct {
	Seed      uint64
	Profile   string
	Violation *Violation  // nil: everything held
	History   []linear.Op // of the order at fault, when Porcupine found it
	Stats     Stats
	Faults    faultCounts
}

// Run runs one seed; trace may be nil.
func Run(seed uint64, trace io.Writer) Result {
	return runWorld(newWorld(seed, trace))
}

func runWorld(w *world) (res Result) {
	defer func() {
		if r := recover(); r != nil { // a panic of the core is a finding like any other
			w.violation("panic", "%v\n%s", r, debug.Stack())
		}
		w.stats.Steps, w.stats.Simulated = w.steps, w.now
		res = Result{Seed: w.seed, Profile: w.profile.name, Violation: w.check.found, History: w.check.history, Stats: w.stats, Faults: w.faults}
		w.close()
	}()
	w.run()
	return res
}

func newWorld(seed uint64, trace io.Writer) *world {
	rng := rand.New(rand.NewPCG(seed, 0x6f72646572))
	return newWorldOf(seed, newProfile(seed, rng), rng, trace)
}

func newWorldOf(seed uint64, p *profile, rng *rand.Rand, trace io.Writer) *world {
	w := &world{seed: seed, profile: p, trace: trace, rng: rng}
	w.minInSync = w.profile.minInSync
	w.check.made, w.check.states, w.check.receipts = [2]map[uint64]uint64{{}, {}}, map[uint64]uint64{}, map[receiptKey]string{}
	w.check.executions, w.check.called, w.check.isOrder = map[uint64]execution{}, map[uint64]called{}, map[uint64]bool{}
	w.check.plain = map[uint64]plainRow{}
	w.check.refused, w.history.writers, w.history.revived = map[string]int{}, map[string]int{}, map[string]uint64{}
	for _, name := range w.profile.readers {
		w.sinks = append(w.sinks, &sink{w: w, name: name})
	}
	w.logf("seed %d, %v", seed, w.profile)
	for i := range w.profile.pods {
		w.addPod(i)
	}
	w.makeLimitsFiles()
	w.makeRegionFiles()
	w.makeCalendars()
	w.net.init(w)
	w.api.init(w)
	w.initMoves()
	for _, p := range w.pods {
		p.start()
	}
	for i := range w.profile.clients {
		w.addClient(i)
	}
	w.scheduleFunctions()
	w.addFlooder()
	w.addSubscriber()
	w.addFollowers()
	w.addFix()
	w.addRegionClients()
	w.addInvokers()
	w.addMapClient()
	w.addMapOrdersClient()
	w.addAskers()
	w.addOfficer()
	w.scheduleLimitsFiles()
	w.scheduleCalendars()
	return w
}

func (w *world) close() {
	for _, p := range w.pods {
		if p.proc != nil {
			w.leaveViews(p.proc)
			p.proc.endView()
			p.proc.st.Close()
		}
	}
}

// run runs the whole life of a world.
func (w *world) run() {
	w.scheduleFault()
	w.scheduleResize()
	w.scheduleForbidding()
	w.scheduleForgery()
	w.scheduleExchange()
	w.scheduleBands()
	w.schedulePowerCut()
	w.runUntil(w.profile.chaos, nil)
	if w.stopped {
		return
	}
	w.heal()
	w.recoverLoss()
	w.checkI13()
	w.checkLapses()
	w.checkSpoiled()
	w.checkDivergence()
	w.checkI11()
	w.checkResize()
	w.checkMoves()
	w.checkI12()
	w.checkSurge()
	w.checkRestore()
	w.checkPower()
	w.checkEnd()
	w.checkExchange()
	w.checkHistory()
	w.logf("the end: %d orders acknowledged", w.stats.Acked)
}

// Describe returns the world of a seed in one line.
func Describe(seed uint64) string {
	return fmt.Sprintf("seed %d: %v", seed, newProfile(seed, rand.New(rand.NewPCG(seed, 0x6f72646572))))
}
