//go:build !faulty

package live

// CanDrop says whether nodes can be told to lose orders: in a build with the tag faulty, which is for tests only.
const CanDrop = false

func dropEvery(uint64) {}
