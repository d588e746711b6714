package replica

// EventKind says what happened.
type EventKind uint8

// Events. The fields each one reads are named; slices are read during Step only.
const (
	EventNone        EventKind = iota
	EventClientFrame           // Conn, Frame, Hint: OpenSession, Submit, Get or ReadLog for this partition
	EventPeerFrame             // Frame: a frame of another replica for this partition (wire.FromPeer)
	EventPeerUp                // Address, Bulk: a connection to the node at Address is there (again)
	EventPeerDown              // Address: the connection was reset or refused, the process is most likely gone
	EventConfig                // Config, Fresh
	EventCASResult             // ChangeID, Outcome, Config (what stands now, if the arbiter said), Text
	EventCursor                // Seq, Reader: that reader holds everything up to Seq durably
	EventDrain                 // leave in good order: hand over, be retired; orders are served meanwhile
	EventStop                  // stop now: admission ends, what was accepted is finished
	EventTick                  // time passes; at least every Timing.Beacon / 2
	EventFlush                 // the frames of this wake-up were all stepped
)

// Outcome of a compare-and-swap.
type Outcome uint8

// Outcomes. Only OutcomeOK, OutcomeConflict and OutcomeRefused are facts: after
// OutcomeUnknown the change may have happened, or may still happen.
const (
	OutcomeOK       Outcome = iota + 1
	OutcomeConflict         // the record has another version
	OutcomeRefused          // the arbiter said no for another reason; Text says why
	OutcomeUnknown          // timed out, connection lost, server error
)

// Event is what happened; see the kinds for the fields in use.
type Event struct {
	Kind     EventKind
	Outcome  Outcome
	Bulk     bool   // the connection for bulk
	Fresh    bool   // Config was read from the arbiter itself (quorum), not from a watch or cache
	Conn     uint64 // the caller's name for a client connection; never reused
	Client   uint64 // whose it is, for an OpenSession; equal for all connections of one client, 0: not known
	Seq      uint64
	Frame    []byte // a whole frame as returned by wire.Split
	Reader   int    // place in Options.Readers
	Hint     Hint   // of Prefetch(Frame), if it was asked
	Address  string
	ChangeID string
	Text     string
	Config   *Config
}
