// Package skew mixes nodes and clients of neighbouring protocol versions, as real
// processes and under load: what a rolling update, its rollback and a failure in
// the middle of it look like. `make skew` runs it.
//
// The version before is built in two ways. A build of this checkout with the tag
// wire_previous says and answers what the release before does; it is there in
// every clone. The real programs of the last commit that spoke the version before
// are built where the clone's history reaches back so far.
package skew
