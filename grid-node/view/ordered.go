//go:build amd64 && !race

package view

// release32 stores a word that readers load atomically, after all stores before it. So does
// any store of this processor; an atomic one would also wait for them to finish.
func release32(p *uint32, v uint32) { *p = v }
