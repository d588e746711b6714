// Package view holds what is asked about the orders of a partition: a row for each entry of
// the log, in typed columns outside the Go heap, with postings for equality and sorted runs
// for ranges. It follows the committed log; it does no I/O, starts no goroutine and reads
// no clock.
//
// A row's number is its entry's sequence number, so a position in the log is a position in
// the view, the same on every copy. Rows of entries that are no orders are empty. Columns
// are fixed in width; what does not fit (a decimal of many digits, a time far from its
// neighbours) is marked and read from the log entry, as ClOrdID and OrigClOrdID always are:
// the log holds every entry that the view has a row for.
//
// One goroutine writes: Apply, Publish, Drop. Any number read, each a prefix of the log that
// was fixed when it took its Snapshot; they take no lock and hold up no write. A row never
// changes: the state of an order is the number of the entry that replaced or cancelled it,
// so it can be told for any prefix.
package view
