// Package store keeps one partition's log in memory outside the Go heap.
//
// Entries are stored consecutively in anonymous mappings ("segments") without pointers, so
// the garbage collector never scans them: the live heap stays a few MiB whatever the grid
// holds. Two indexes, both outside the heap as well, grow in small steps: seq to position
// (4 bytes an entry) and ClOrdID to position (8 bytes a slot, extendible hashing).
//
// One goroutine appends and looks up by ClOrdID. Any number of goroutines may
// read entries up to Committed without a lock.
package store
