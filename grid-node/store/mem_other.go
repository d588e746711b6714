//go:build !unix

package store

// mapMemory falls back to the Go heap; the bytes hold no pointers, so the collector does
// not scan them.
func mapMemory(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapMemory([]byte) {}
