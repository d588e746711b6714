// Package region has the keyed objects of a partition: regions with a name, in them keys
// with a value each, a version and possibly a time by which it is gone. It is a pure
// function of its operations, which the part regions of grid-node/machine takes from the
// entries of the log: no clock, no goroutine, no randomness, no map order.
//
// Keys and values lie in blocks of 128 bytes outside the Go heap, so that a garbage
// collection does not see them and no order of operations fragments them: what fits is a
// function of what is held. The keys of a region are in a treap, whose priorities are a
// hash with a seed of the log: found in about 1.4 log2 n comparisons, and scanned in order.
package region
