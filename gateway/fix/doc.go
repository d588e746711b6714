// Package fix is the session layer of a FIX acceptor: FIX 4.2, FIX 4.4, and FIX 5.0 SP2
// over FIXT 1.1. It does no I/O: bytes and the time come in, bytes go out (Output), and no
// goroutine is started. All Links and Sessions of an Acceptor are used by one goroutine.
//
// A Link is a connection, a Session a conversation between two CompIDs that outlives it.
// What survives a connection, the numbers and the messages that may be asked for again,
// is behind Store: package desk keeps it in a grid's log
// (docs/adr/0044-fix-sessions-are-log-state.md). Memory is a Store for tests of the session
// layer.
//
// # What the acceptor does where the standard leaves it open
//
//   - Before the logon nothing is answered: a logon that is refused for its CompIDs, time,
//     fields or credentials takes no number, and the connection is closed. Event has the
//     reason.
//   - Messages that arrive behind a gap are kept, up to Limits.GapMessages and
//     Limits.GapBytes, and processed in order. A ResendRequest is answered at once,
//     whatever its own number is, or both sides could wait for each other.
//   - A Reject (35=3) is resent like application messages; all other administrative
//     messages are replaced by a gap fill.
//   - In application messages, user-defined tags (5000 and above) pass. In administrative
//     messages they are refused.
//   - While messages are resent new ones are not sent between them; they follow, with
//     PossDupFlag.
package fix
