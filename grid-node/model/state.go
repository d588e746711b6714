package model

// Sizes of a State. Bounds (bounds.go) say how much of it a run uses.
const (
	maxPods   = 3
	maxProcs  = 5 // live processes: one per pod, and those that keep running after their pod was replaced
	maxEpochs = 9 // epochs from the oldest a live process is in to the record's
	maxPuts   = 4 // proposals in progress to the arbiter
	maxBorn   = 9 // incarnations of a pod, beside the first, that are still referenced
)

// ID names a process, which is one incarnation of a pod. 0 is none.
type ID uint8

// Role of a process.
type Role uint8

// Roles.
const (
	Learner Role = iota // not in sync; epoch 0: has not read the record yet
	Backup
	Fenced // has left its epoch and proposed itself
	Primary
)

// Purpose of the pending proposal of a process.
type Purpose uint8

// Purposes.
const (
	None Purpose = iota
	TakeOver
	Shrink
	Admit
	HandOver
	Retire
)

// Proc is one live process. The fields below Log are those of a primary.
type Proc struct {
	ID    ID
	Role  Role
	Epoch uint8
	Log   Log
	Prop  Purpose // its proposal, until the epoch moves
	Of    pods    // the subject of the proposal: dropped, admitted or handed over to
	Cut   bool    // not of a primary: its log may not be a prefix of its primary's, see State.Cut

	Peers     [maxPods]Peer // by pod: the other in-sync members, and learners
	Commit    uint8
	Floor     uint8 // entries taken over: nothing is read before they are committed
	Suspended bool  // acknowledges nothing until its proposal is decided
	Closed    bool  // takes no orders: it is handing over
	Read      Read
}

// Peer is a primary's view of another process.
type Peer struct {
	ID     ID
	Acks   bool  // in the ack set
	Stored uint8 // entries it has acknowledged
	Lease  bool  // its promise not to take over yet has not expired
	Echoed bool  // it has answered a message sent after the pending read
}

// pods is a set of pods, a bit each.
type pods uint8

func (s pods) has(pod int) bool { return s>>pod&1 == 1 }

// Read is the one pending confirmed read of a primary. A read whose value holds all that
// clients know is right whenever it is answered, so only the others are followed: they
// must never be answered.
type Read uint8

// Reads.
const (
	NoRead Read = iota
	Stale       // arrived when this primary lacked an entry clients knew
)

// Config is {primary, inSync} of one epoch; Others is inSync without the primary,
// by pod.
type Config struct {
	Primary ID
	Others  [maxPods]ID
}

func (c Config) has(id ID) bool { return id != 0 && (c.Primary == id || c.Others[podOf(id)] == id) }

// State is the whole system. It is comparable, and settle makes it canonical.
type State struct {
	Procs [maxProcs]Proc // by ID, the empty ones last

	// The arbiter: the record is Config[Epoch]. Earlier ones can still be read by a stale
	// watch. Puts are in flight: each is based on this very record, can land now, later or
	// never, and outlives its proposer.
	Epoch  uint8
	Config [maxEpochs + 1]Config
	Puts   [maxPuts]Config
	Late   Config // of the mutant BlindPut: based on an older record, and still able to land

	// The network between processes: messages are lost, late, duplicated and reordered, so
	// a message once sent in an epoch can arrive as long as a process is in that epoch.
	Sent  [maxEpochs + 1]Log            // the log of the epoch's primary when it left the epoch
	Acked [maxEpochs + 1][maxPods]uint8 // 1 + the longest Log that the peer of a pod acknowledged; 0 nothing

	// Epochs that began with a hand-over that was cut short: a fault intervened, and some
	// member may store entries that the new primary lacks, none of them committed.
	Cut [maxEpochs + 1]bool

	Known Log // the longest prefix acknowledged to clients

	Wanted pods // which are to hold a copy, where the partition moves

	Orders, Faults, HandOvers, Retires, Moves uint8          // used up
	Born                                      [maxPods]uint8 // the last referenced incarnation of each pod

	Broken  Invariant // found by an action; not part of the state
	renamed renamed   // what settle did; not part of the state
}

// Log is a sequence of orders, two bits each, the first one lowest. Orders are
// numbered from 1 as they are taken, each by one primary.
type Log uint8

// Len returns the number of entries.
func (l Log) Len() uint8 {
	switch {
	case l == 0:
		return 0
	case l < 1<<2:
		return 1
	case l < 1<<4:
		return 2
	}
	return 3
}

// Prefix returns the first n entries.
func (l Log) Prefix(n uint8) Log { return l & (1<<(2*n) - 1) }

// Append adds an order.
func (l Log) Append(order uint8) Log { return l | Log(order)<<(2*l.Len()) }

// StartOf reports whether m begins with l.
func (l Log) StartOf(m Log) bool { return m.Prefix(l.Len()) == l }

func podOf(id ID) int { return int(id-1) % maxPods }

func idOf(pod int, incarnation uint8) ID { return ID(1 + pod + maxPods*int(incarnation)) }

func (s *State) proc(id ID) *Proc {
	for i := range s.Procs {
		if s.Procs[i].ID == id && id != 0 {
			return &s.Procs[i]
		}
	}
	return nil
}

// primaryOf returns the primary of an epoch if it lives, whatever epoch it is in.
func (s *State) primaryOf(epoch uint8) *Proc { return s.proc(s.Config[epoch].Primary) }

// serving returns the primary of an epoch if it is in it.
func (s *State) serving(epoch uint8) *Proc {
	if p := s.primaryOf(epoch); p != nil && p.Role == Primary && p.Epoch == epoch {
		return p
	}
	return nil
}

func (s *State) record() Config { return s.Config[s.Epoch] }

// sent returns what the primary of an epoch sent to its peer in it.
func (s *State) sent(epoch uint8) Log {
	if p := s.serving(epoch); p != nil {
		return p.Log // whatever is appended is sent at once: when it arrives is open anyway
	}
	return s.Sent[epoch]
}

// member reports whether a peer of a primary is in sync by its configuration.
func (s *State) member(p *Proc, pod int) bool {
	return p.Peers[pod].ID != 0 && s.Config[p.Epoch].Others[pod] == p.Peers[pod].ID
}

// put adds a proposal made in an epoch. Based on an older record it cannot land.
func (s *State) put(epoch uint8, c Config) {
	if epoch != s.Epoch {
		return
	}
	for i := range s.Puts {
		switch s.Puts[i] {
		case c:
			return
		case Config{}:
			s.Puts[i] = c
			return
		}
	}
	panic(tooSmall("more proposals under way than maxPuts"))
}

func (s *State) removePut(c Config) bool {
	for i := range s.Puts {
		if s.Puts[i] == c && c.Primary != 0 {
			copy(s.Puts[i:], s.Puts[i+1:])
			s.Puts[maxPuts-1] = Config{}
			return true
		}
	}
	return false
}

// initial: pod A has just claimed the partition, no other process has read it yet. That it
// is A is no restriction: the pods are alike, and a claim based on another conflicts.
func (m *Spec) initial() State {
	s := State{Epoch: 1}
	s.Config[1] = Config{Primary: idOf(0, 0)}
	if m.Moves > 0 {
		s.Wanted = 1<<m.copies() - 1
	}
	for pod := range int(m.Members) {
		s.Procs[pod] = Proc{ID: idOf(pod, 0)}
	}
	return s
}
