package fix

// Store is what of a session outlives its connection and its gateway: both numbers, and
// the messages that may be asked for again. In a grid's log (ADR 44, package desk) a number
// is given by an entry, and a message leaves when that is committed; so what is asked for is
// answered later, by methods of the session, in the order of the numbers. Memory answers
// within the call.
type Store interface {
	// Bind tells the store its session, before all other calls.
	Bind(s *Session)
	// Open asks for the session, for a Logon that is admitted. The answer is Session.Opened,
	// then Next has the numbers before the Logon, or Session.NotOpened. Until then Session.Waits
	// may say why there is none.
	Open(now Now, o Opening)
	// Closed tells that the connection has ended. Nothing that was asked for is awaited.
	Closed()
	// Next returns the number expected of the other side next, and that of the message
	// sent next. Both begin at 1.
	Next() (in, out uint64)
	// Received records that all numbers below next are processed.
	Received(next uint64)
	// Take asks for the next number for a message. The answer is Session.Numbered. m.Body is
	// valid during the call.
	Take(now Now, m Sent)
	// Read returns the first message from number n to number to that is resent, and its
	// number.
	Read(now Now, n, to uint64) (at uint64, m Sent, found Found)
	// Busy reports whether the session must not process more messages for now. When that
	// ends they are presented again.
	Busy() bool
	// Here answers Session.Probe: whether the counterparty is there.
	Here(here bool)
}

// Opening is what a Store has to know of a Logon.
type Opening struct {
	Seq    uint64 // MsgSeqNum
	SentNs int64  // SendingTime, unix nanoseconds
	Reset  bool   // both numbers begin at 1
}

// Found is what Store.Read found.
type Found uint8

// Results of Store.Read.
const (
	FoundNone  Found = iota // no message of the range is resent
	FoundOne                // there is one
	FoundLater              // it is looked for: Session.Continue is called when it is known
)

// Sent is a message without the parts of its header that differ when it is resent.
type Sent struct {
	TimeNs  int64  // its SendingTime, unix nanoseconds
	Type    string // MsgType
	Body    []byte // fields after the header, each with its SOH
	Kept    bool   // it is resent
	Ref     uint64 // the number of the received message that it refuses, if that was the last one; 0: none
	Refused bool   // the message that it answers
	Left    bool   // it answers a Logout of the other side, whose session has left in order
}
