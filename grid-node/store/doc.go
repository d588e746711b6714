// Package store keeps one partition's log in memory outside the Go heap.
//
// Entries stand one behind the other in anonymous mappings ("segments") that
// hold no pointers, so the garbage collector never sees them: the live heap
// stays a few MiB whatever the grid holds. Two indexes go with them, both
// outside the heap as well, both growing in small steps: seq to position (4
// bytes an entry) and ClOrdID to position (8 bytes a slot, extendible hashing).
//
// One goroutine appends and looks up by ClOrdID. Any number of goroutines may
// read entries up to Committed without a lock.
package store
