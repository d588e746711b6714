//go:build !faulty

package live

// CanDrop reports whether nodes can lose orders on request: in a build with the tag faulty, which is for tests only.
const CanDrop = false

func dropEvery(uint64) {}
