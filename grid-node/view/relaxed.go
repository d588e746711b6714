//go:build !race

package view

// put32 stores a word that readers load atomically, without ordering other stores before
// it: what they may use of it was published by a row's number. An atomic store would cost
// as much as the rest of a posting.
func put32(p *uint32, v uint32) { *p = v }
