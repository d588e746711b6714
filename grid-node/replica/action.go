package replica

// ActionKind is what the caller has to do.
type ActionKind uint8

// Actions, in the order in which they have to be executed.
const (
	ActionReply          ActionKind = iota + 1 // Conn, Head, Tail: write to the client
	ActionSend                                 // Address, Head, Tail, Bulk: write to the node at Address
	ActionCloseConn                            // Conn, Text: Goaway(GoawayProtocol, Text) and close, the client violates the protocol
	ActionPropose                              // Config, Text (what for: take-over, shrink, …), Loss: compare-and-swap, expecting Config.Version
	ActionReadConfig                           // read the record from the arbiter itself, answer with EventConfig{Fresh}
	ActionCommitted                            // Seq: the committed prefix of the store reaches to here
	ActionStatus                               // role, epoch or members changed: look at Status()
	ActionAlarm                                // Alarm, Text: count, log, raise a Kubernetes Event
	ActionRestart                              // Text: discard replica and store, start again with a new boot id
	ActionJournalEntries                       // Tail, Seq: append these entries, the last of which is Seq, to the journal
	ActionJournalConfig                        // Config, Seq: append this configuration, the Seq-th
	ActionJournalState                         // State: a part of the state after the freed entries
	ActionDrained                              // after EventDrain or EventStop: the process may exit, no member waits for it
)

// AlarmKind is an event of interest to a grid's operator. The names are stable: metrics
// and events use them.
type AlarmKind string

// Alarms.
const (
	AlarmClientGap     AlarmKind = "ClientSequenceGap"       // a client skipped a clientSeq
	AlarmPeerGap       AlarmKind = "ReplicationGap"          // a replica missed entries and requested them
	AlarmDiverged      AlarmKind = "LogDiverged"             // hashes do not chain; the entry is rejected, and the primary drops the copy if its history differs
	AlarmStateDiverged AlarmKind = "StateDiverged"           // two replicas have different states after one log; the backup's is discarded and rebuilt
	AlarmBadFrame      AlarmKind = "BadPeerFrame"            // a replica sent what cannot be decoded
	AlarmRegressed     AlarmKind = "ConfigurationRegressed"  // the arbiter shows an older configuration than was seen before
	AlarmUntrue        AlarmKind = "ConfigurationUntrue"     // the arbiter does not know a configuration that the primary announced
	AlarmBadConfig     AlarmKind = "BadConfiguration"        // the arbiter shows an invalid configuration
	AlarmRefused       AlarmKind = "ProposalRefused"         // the arbiter rejected a change
	AlarmRemoved       AlarmKind = "RemovedFromInSync"       // this replica was dropped; it discards itself and joins again
	AlarmMemberDropped AlarmKind = "MemberDropped"           // this primary drops a silent member
	AlarmTakeOver      AlarmKind = "TakeOver"                // this backup takes over from a silent primary
	AlarmHandOver      AlarmKind = "HandOver"                // this primary hands over to a member, as planned
	AlarmRetired       AlarmKind = "MemberRetired"           // a member is removed that is about to stop, or is one copy too many
	AlarmHandOverCut   AlarmKind = "HandOverCutShort"        // a member may hold entries, none committed, that the new primary lacks
	AlarmNoTarget      AlarmKind = "NoHandOverTarget"        // this primary should stop and has no target for a hand-over
	AlarmLossSuspected AlarmKind = "DataLossSuspected"       // every in-sync member was a former process of this pod
	AlarmLossAccepted  AlarmKind = "DataLossAccepted"        // this learner begins a new lineage, as an administrator decided
	AlarmDemotion      AlarmKind = "SiteDemotion"            // this primary makes no more entries, so that another site can
	AlarmFenced        AlarmKind = "SiteFenced"              // another site was promoted in this one's place
	AlarmPromotion     AlarmKind = "SitePromotion"           // this standby makes the entries from now on, or cannot with the token it was given
	AlarmReasserted    AlarmKind = "ConfigurationReasserted" // this primary overwrote a regressed record with its configuration
	AlarmCapacity      AlarmKind = "BackupCapacity"          // a backup cannot store what the primary could
	AlarmInvariant     AlarmKind = "InvariantBroken"         // a bug: the partition stops here
)

// Loss is the reason for a take-over or a shrink; zero for any other change.
type Loss struct {
	Silent int64 // age of the lost member's last heartbeat, ns
	Reset  bool  // its connection ended and reconnecting failed
}

// Action is what the caller has to do; see the kinds for the fields in use.
// Head and Tail together are whole frames. Tail lies in the store and does not change
// while the store is open. Head lies in the outbox until Reset.
type Action struct {
	Kind     ActionKind
	Bulk     bool // part of a learner's feed: must not delay data; uses its own connection
	Alarm    AlarmKind
	Conn     uint64
	Seq      uint64
	Address  string
	Tail     []byte
	Text     string
	Config   *Config
	Loss     Loss
	State    *JournalState
	off, end int
}

// Outbox collects the actions of Steps. Its memory is reused.
type Outbox struct {
	Actions   []Action
	Redirects uint64 // NotPrimary frames among the replies
	buf       []byte

	direct bool   // see Direct
	conn   uint64 // the connection whose answers go
	conned []byte // into this buffer
}

// Direct appends answers to reads of a connection to buf, its output buffer, instead of an
// action, until Taken: they are the bulk of the output, and are copied once.
func (o *Outbox) Direct(conn uint64, buf []byte) { o.direct, o.conn, o.conned = true, conn, buf }

// Taken ends Direct and returns its buf with the answers.
func (o *Outbox) Taken() []byte {
	buf := o.conned
	o.direct, o.conned = false, nil
	return buf
}

// Head is the first part of the action's frames.
func (o *Outbox) Head(a *Action) []byte { return o.buf[a.off:a.end:a.end] }

// Reset drops the actions and keeps the memory.
func (o *Outbox) Reset() {
	clear(o.Actions) // drop strings and tails, they would keep memory alive
	o.Actions = o.Actions[:0]
	o.buf, o.Redirects = o.buf[:0], 0
	if cap(o.buf) > 4<<20 {
		o.buf = nil // one burst must not hold memory indefinitely
	}
}

// reply adds frames that were appended to buf since off, for a client. A run of
// replies to one connection becomes one action.
func (o *Outbox) reply(conn uint64, off int, tail []byte) {
	if n := len(o.Actions); n > 0 {
		if a := &o.Actions[n-1]; a.Kind == ActionReply && a.Conn == conn && a.end == off && a.Tail == nil {
			a.end, a.Tail = len(o.buf), tail
			return
		}
	}
	o.Actions = append(o.Actions, Action{Kind: ActionReply, Conn: conn, Tail: tail, off: off, end: len(o.buf)})
}

// send adds the frame that was appended to buf since off, for another replica.
func (o *Outbox) send(address string, off int, tail []byte) {
	o.Actions = append(o.Actions, Action{Kind: ActionSend, Address: address, Tail: tail, off: off, end: len(o.buf)})
}

// last is the action added last.
func (o *Outbox) last() *Action { return &o.Actions[len(o.Actions)-1] }

func (o *Outbox) add(a Action) { o.Actions = append(o.Actions, a) }
