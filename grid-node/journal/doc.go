// Package journal keeps the log of a partition's copy on a local disk, so that a grid that
// lost power as a whole comes back with everything it had acknowledged. A journal is a
// directory of files that are only appended to: segments with the entries of the log,
// byte by byte, and with the configurations that the copy was in; and at most one state
// file, of what the entries that were freed led to.
//
// What is written counts after Sync. A torn end of the newest segment is cut when the
// journal is read; damage before a place that is known to have been synced is an error
// with file, offset and entry, and nothing of the journal is used.
package journal
