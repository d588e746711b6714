package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// profile is the kind of world of a seed.
type profile struct {
	name          string
	replicas      int
	minInSync     int
	leases        bool // half the reads are leased; clocks then run within 200 ppm
	hostile       bool // the network keeps no order and loses single frames
	mayLose       bool // every process may die: acknowledged orders can be lost
	rewinds       bool // the API server may go back to an older record
	maxPPM        int64
	limits        replica.Limits
	retention     replica.Retention // entries that the sink holds are freed
	resizes       *rand.Rand        // the number of copies changes; nil: never
	forbids       *rand.Rand        // the API server rejects changes now and then; nil: never
	withdraws     *rand.Rand        // an accepted loss is withdrawn now and then; nil: never
	floods        *rand.Rand        // a client opens sessions without limit; nil: none
	placed        bool              // where the number of copies changes the record names their pods, as the operator does
	moves         *rand.Rand        // the partition moves between pods; nil: never
	plans         *rand.Rand        // by an operator's plan; nil: by direct changes
	pods          int               // replicas, or more where the partition moves
	surges        *rand.Rand        // a pair is rolled with a third copy beside it; nil: never
	readers       []string          // names of the readers of the log
	standby       bool              // the partition is a standby, see pair.go
	follows       bool              // there are followers
	outside       string            // the reader outside the grid, "" for none
	partial       bool              // the first pod lacks the last of the readers
	starves       *rand.Rand        // the threads that feed the sink stall now and then; nil: never
	digests       *rand.Rand        // states are compared, and one is spoiled in the end; nil: neither
	views         *rand.Rand        // processes keep views of their logs, which are asked; nil: neither
	viewValues    int               // distinct texts of a column that they have room for
	rests         bool              // idle replicas skip ticks
	forges        *rand.Rand        // a stranger sends frames as if it were a node; nil: never
	decides       *rand.Rand        // orders are decided on by a function; nil: by none
	calls         *rand.Rand        // every copy calls functions for each order; nil: none
	guards        *rand.Rand        // limits are in force, and a person kills; nil: none
	sources       *rand.Rand        // an operator gives the limits, in files that reach pods late; nil: each process has its own
	restores      *rand.Rand        // the site is lost in the end, and restored from an archive; nil: never
	fixes         *rand.Rand        // there are FIX sessions; nil: none
	copies        *rand.Rand        // of the worlds whose last FIX session gets drop copies, see copies.go; nil: it does not
	lapses        *rand.Rand        // whose orders are cancelled when they are gone, see lapse.go; nil: they are not
	regions       *rand.Rand        // clients change a region; nil: there is none
	batches       *rand.Rand        // clients change several keys at once; nil: they do not
	regionFile    *rand.Rand        // when the file of regions changes; nil: it does not
	regionSources *rand.Rand        // what the operator gives; nil: a person keeps the file
	computes      *rand.Rand        // and call functions with its keys
	maps          *rand.Rand        // and a client has all of it read
	mapsOrders    *rand.Rand        // a client has all orders read, see maporders.go; nil: none does
	match         *rand.Rand        // the partition matches, see match.go; nil: it stores orders
	bands         *rand.Rand        // and the exchange moves price bands; nil: it does not
	calendar      *rand.Rand        // and has a calendar of sessions; nil: none
	orders        *rand.Rand        // clients keep its books order by order, see orders.go; nil: they do not
	fix50         *rand.Rand        // half of the orders are of FIX 5.0 SP2, see fix50.go; nil: none
	updates       bool              // and some pods begin with a release that does not know it
	journal       *rand.Rand        // copies have journals, and the power is cut, see journal.go; nil: neither
	heirWait      time.Duration
	timing        replica.Timing
	odds          odds
	bulkDelay     int64 // maximum extra delay of a learner's feed
	onChange      int   // of 1000 changes of the record that are combined with a fault
	lateFlush     int   // of 1000 wake-ups that bring more events before they act
	clients       int   // sessions
	reads         int   // of 100 things a client does
	leasedOf10    int   // of 10 reads, with leases
	pace          int64 // mean time between two things a client does
	every         int64 // mean time between two faults
	chaos         int64 // how long faults come
	weights       weights
}

// odds of single events, of 1000.
type odds struct {
	drop, duplicate, reorder, late int // a frame in a hostile world
	lateGet, lateWatch, lostAnswer int // a call to the API server
}

// weights of the faults that come and go: how often each is drawn.
type weights [faultKinds]int

func (p *profile) beacon() time.Duration { return orDefault(p.timing.Beacon, 20*time.Millisecond) }
func (p *profile) grace() time.Duration  { return orDefault(p.timing.Grace, 300*time.Millisecond) }

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// shape sets what is special about a profile.
type shape struct {
	name string
	set  func(p *profile)
}

// shapes in the order in which seeds go through them, so that few seeds already
// see all of them.
var shapes = []shape{
	{"mixed", func(*profile) {}},
	{"hostile", hostile},
	{"pauses", pauses},
	{"api", apiTrouble},
	{"restarts", restarts},
	{"cuts", cuts},
	{"mixed", func(*profile) {}},
	{"drift", drift},
	{"hostile", hostile},
	{"doom", doom},
	{"api", apiTrouble},
	{"rewind", rewind},
	{"rolls", rolls},
	{"leases", leases},
}

func hostile(p *profile) {
	p.hostile = true
	p.odds.drop, p.odds.duplicate, p.odds.reorder, p.odds.late = 12, 20, 60, 6
}

func pauses(p *profile) {
	p.weights[faultPause], p.weights[faultStall] = 60, 25
	p.weights[faultCut], p.weights[faultSlowLink] = 20, 20
}

func apiTrouble(p *profile) {
	for _, k := range []faultKind{faultOutage, faultCommitTimeout, faultLatePut, faultSlowAPI, faultWatchSilent, faultTouch} {
		p.weights[k] *= 4
	}
	p.odds.lostAnswer, p.odds.lateGet, p.odds.lateWatch = 100, 100, 100
}

func restarts(p *profile) {
	p.weights[faultCrash], p.weights[faultReset] = 60, 20
	p.limits.JoinBound = 8
}

func cuts(p *profile) {
	p.weights[faultCut], p.weights[faultIsolate], p.weights[faultReset] = 60, 30, 20
}

func drift(p *profile) {
	p.maxPPM, p.leases = 40000, false
	p.weights[faultWallJump] = 30
}

func doom(p *profile) {
	p.mayLose = true
	p.weights[faultCrash], p.weights[faultLossAccepted] = 40, 6
}

func rewind(p *profile) {
	p.rewinds = true
	p.weights[faultRewind] = 25
	p.weights[faultLatePut] = 25
}

func rolls(p *profile) {
	p.weights[faultDrain], p.weights[faultPrefer], p.weights[faultStop] = 50, 30, 10
	p.weights[faultSlowLink], p.weights[faultJoinMeetsHandOver], p.onChange = 40, 60, 300
}

// leases are worlds in which a primary is suspected wrongly, repeatedly, while it is still
// reachable.
func leases(p *profile) {
	p.onChange = 400
	p.leases, p.leasedOf10, p.reads, p.pace = true, 9, 55, 6*millisecond
	p.weights[faultCut], p.weights[faultSlowLink], p.weights[faultReset], p.weights[faultIsolate] = 60, 40, 30, 20
	p.weights[faultSuspicion] = 80
	p.odds.lostAnswer = 200
}

// newProfile returns the world of a seed.
func newProfile(seed uint64, rng *rand.Rand) *profile {
	p := &profile{
		replicas:   2 + int(seed/uint64(len(shapes)))%2,
		minInSync:  1,
		leases:     rng.IntN(2) == 0,
		maxPPM:     200,
		limits:     replica.Limits{Window: 16, InFlight: 64, PendingReads: 32, JoinBound: 32, Sessions: 6, ClientSessions: 3, LearnerBytes: 16 << 10},
		timing:     replica.Timing{ClaimDelay: 400 * time.Millisecond, HandOverDelay: time.Duration(50+rng.IntN(400)) * time.Millisecond},
		odds:       odds{lateGet: 20, lateWatch: 20, lostAnswer: 10},
		lateFlush:  rng.IntN(300),
		bulkDelay:  []int64{millisecond, 10 * millisecond, 100 * millisecond}[rng.IntN(3)],
		onChange:   100,
		clients:    3,
		pace:       8 * millisecond,
		reads:      23,
		leasedOf10: 6,
		every:      int64(80+rng.IntN(400)) * millisecond,
		chaos:      int64(2500+rng.IntN(3500)) * millisecond,
		weights: weights{
			faultSuspicion: 4, faultJoinMeetsHandOver: 3, faultCut: 10, faultIsolate: 5, faultSlowLink: 10, faultReset: 10, faultPause: 15, faultStall: 8, faultCrash: 15, faultWallJump: 3,
			faultOutage: 6, faultCommitTimeout: 6, faultLatePut: 6, faultSlowAPI: 6, faultWatchSilent: 6, faultTouch: 8,
			faultSinkCrash: 6, faultClientLost: 10, faultClientStalled: 10, faultDrain: 8, faultStop: 3, faultPrefer: 8,
		},
	}
	if rng.IntN(4) == 0 {
		p.minInSync = 2
	}
	needsAll(p, seed)
	retain(p, seed)
	resizes(p, seed)
	surges(p, seed)
	starves(p, seed)
	floods(p, seed)
	forbids(p, seed)
	s := shapes[seed%uint64(len(shapes))]
	p.name = s.name
	s.set(p)
	if p.mayLose {
		p.withdraws = rand.New(rand.NewPCG(seed, 0x7769746864726177))
	}
	forges(p, seed)
	reads(p, seed)
	digests(p, seed)
	moves(p, seed)
	plans(p, seed)
	rests(p, seed)
	places(p, seed)
	follows(p, seed)
	restores(p, seed)
	fixes(p, seed)
	decides(p, seed)
	views(p, seed)
	calls(p, seed)
	limited(p, seed)
	sourced(p, seed)
	regions(p, seed)
	regionFile(p, seed)
	batches(p, seed)
	computes(p, seed)
	maps(p, seed)
	fix50(p, seed)
	mapsOrders(p, seed)
	return p
}

// needsAll lets one in ten of the worlds with three pods accept orders only with all three
// copies. It uses its own random source.
func needsAll(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x616c6c206f662033)); p.replicas == 3 && rng.IntN(10) == 0 {
		p.minInSync = 3
	}
}

// retain lets a third of the worlds free downstream entries. It uses its own random
// source, so that it changes no other world.
func retain(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x6672656564))
	if rng.IntN(3) != 0 {
		return
	}
	high := []int64{8 << 10, 70 << 10, 130 << 10}[rng.IntN(3)]
	p.retention = replica.Retention{FreeDownstream: true, High: high, Low: high / 2, Critical: high * []int64{1, 3}[rng.IntN(2)]}
}

// reads gives a quarter of the worlds named readers, and half of those a reader that the
// first pod lacks, as while pods are replaced after a sink was added. It uses its own
// random source, started so that no seed in testdata/seeds.txt became another world.
func reads(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x72656164bae1bf))
	if p.readers = []string{""}; rng.IntN(4) == 0 {
		p.readers = [][]string{{"", "db"}, {"db"}, {"archive", "db"}}[rng.IntN(3)]
		p.partial = rng.IntN(2) == 0 && p.surges == nil // which wait for every sink
	}
}

// readersOf are those of a pod.
func (p *profile) readersOf(pod int) []string {
	if p.partial && pod == 0 {
		return p.readers[:len(p.readers)-1]
	}
	return p.readers
}

// starves makes the sink's writers wait for a processor in a third of the worlds.
func starves(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x737461727665)); rng.IntN(3) == 0 {
		p.starves = rng
	}
}

// rests lets replicas rest in a quarter of the worlds, as they do in a node. Started so
// that no seed in testdata/seeds.txt became another world.
func rests(p *profile, seed uint64) {
	p.rests = rand.New(rand.NewPCG(seed, 0x72d80f59)).IntN(4) == 0
}

// follows gives a sixth of the worlds followers, one of them outside the grid as one of its readers.
// Begun so that no seed in testdata/seeds.txt became another world.
func follows(p *profile, seed uint64) {
	if p.follows = rand.New(rand.NewPCG(seed, followsBegin)).IntN(6) == 0; p.follows && p.surges == nil { // which wait for every sink
		p.outside = outsideReader
	}
}

const followsBegin = 0x666f6c6c6f787823

func (p *profile) String() string {
	return fmt.Sprintf("%s: replicas %d, minInSync %d, leased reads %t, frames lost and overtaken %t, clocks within %d ppm, entries downstream freed %t, copies added and given up %t, named %t, rolled with a third copy %t, moved among %d pods %t, by an operator's plan %t, sessions opened without end %t, readers %q, one of them not in the first pod %t, sink writers starved %t, changes refused %t, frames forged %t, states compared %t, at rest without ticks %t, followers %t, a reader outside %q, restored from an archive %t, FIX sessions %t, decided on by a function %t, limits %t, by an operator %t, views %t, functions called %t, regions %t, batches %t, functions computing %t, maps %t, of orders %t, FIX 5.0 SP2 %t, with an update %t, a fault every %d ms for %d ms",
		p.name, p.replicas, p.minInSync, p.leases, p.hostile, p.maxPPM, p.retention.FreeDownstream, p.resizes != nil, p.placed, p.surges != nil, p.pods, p.moves != nil, p.plans != nil, p.floods != nil, p.readers, p.partial, p.starves != nil, p.forbids != nil, p.forges != nil, p.digests != nil, p.rests, p.follows, p.outside, p.restores != nil, p.fixes != nil, p.decides != nil, p.guards != nil, p.sources != nil, p.views != nil, p.calls != nil, p.regions != nil, p.batches != nil, p.computes != nil, p.maps != nil, p.mapsOrders != nil, p.fix50 != nil, p.updates, p.every/millisecond, p.chaos/millisecond)
}

// newClock is that of one more machine.
func (w *world) newClock() clock {
	ppm := w.profile.maxPPM
	return clock{base: w.between(second, 1000*second), ppm: w.between(-ppm, ppm), wall: w.between(-2*second, 2*second)}
}
