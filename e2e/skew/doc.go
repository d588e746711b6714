// Package skew mixes nodes and clients of neighbouring releases, as real processes and
// under load: what a rolling update, its rollback and a failure in the middle of it look
// like. `make skew` runs it.
//
// The release before is built in two ways: from this checkout, and from the commit that
// stands for it, where the clone's history reaches back so far.
package skew
