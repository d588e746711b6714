package replica

// EventKind is the kind of an event.
type EventKind uint8

// Events. The fields used are named; slices are read during Step only.
const (
	EventNone        EventKind = iota
	EventClientFrame           // Conn, Frame, Hint: OpenSession, Submit, Get, ReadLog, Advance, LinkOpen, LinkEntries, FixOpen, FixSubmit, FixStep, FixResend, FixHere, Kill, ReadKill or ReadLimits for this partition
	EventPeerFrame             // Frame: a frame of another replica for this partition (wire.FromPeer)
	EventPeerUp                // Address, Bulk: a connection to the node at Address was (re)established
	EventPeerDown              // Address: the connection was reset or refused, the process is most likely dead
	EventConfig                // Config, Fresh
	EventCASResult             // ChangeID, Outcome, Config (the current one, if known), Text
	EventCursor                // Seq, Reader: that reader holds everything up to Seq durably
	EventJournaled             // Journaled: what is durable in the journal
	EventClientGone            // Conn: a connection that HoldsFix ended; no frame of it follows
	EventMapped                // Mapped: the answer to a Map
	EventDrain                 // stop gracefully: hand over, be retired; orders are served in the meantime
	EventStop                  // stop now: admission ends, accepted requests are finished
	EventTick                  // time passes; at least every Timing.Beacon / 2
	EventFlush                 // all frames of this wake-up were stepped
)

// Outcome of a compare-and-swap.
type Outcome uint8

// Outcomes. Only OutcomeOK, OutcomeConflict and OutcomeRefused are conclusive: after
// OutcomeUnknown the change may have happened, or may still happen.
const (
	OutcomeOK       Outcome = iota + 1
	OutcomeConflict         // the record has another version
	OutcomeRefused          // the arbiter rejected it for another reason, given in Text
	OutcomeUnknown          // timed out, connection lost, server error
)

// Event is an input of Step; see the kinds for the fields in use.
type Event struct {
	Kind     EventKind
	Outcome  Outcome
	Bulk     bool   // the connection for bulk
	Fresh    bool   // Config was read from the arbiter itself (quorum), not from a watch or cache
	Conn     uint64 // the caller's id of a client connection; never reused
	Client   uint64 // its client, for an OpenSession; equal for all connections of one client, 0: unknown
	Seq      uint64
	Frame    []byte // a whole frame as returned by wire.Split
	Reader   int    // place in Options.Readers
	Hint     Hint   // of Prefetch(Frame), if called
	Address  string
	ChangeID string
	Text     string
	Config   *Config

	Journaled *Journaled
	Mapped    *Mapped
}
