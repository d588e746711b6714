// Package api is the HTTP API of a drill's recorder, and a client of it. The recorder (package
// probe/drill/recorder) is one process with one clock: it makes the traffic, keeps the ledger, and
// is notified by the driver of the drill when a fault begins and ends. It never injects anything
// itself.
//
// All times are the recorder's, wall clock in RFC 3339 with nanoseconds; durations are nanoseconds.
// The times of one answer may be subtracted from its Now.
package api
