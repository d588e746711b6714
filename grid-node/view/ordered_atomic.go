//go:build !amd64 || race

package view

import "sync/atomic"

// release32 stores a word that readers load atomically, after all stores before it.
func release32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
