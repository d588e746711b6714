//go:build faulty

package live

import "github.com/ordergrid/ordergrid/grid-node/replica"

// CanDrop reports whether nodes can lose orders on request: in a build with the tag faulty, which is for tests only.
const CanDrop = true

func dropEvery(n uint64) { replica.DropEvery = n }
