// Package model checks the replication protocol of docs/replication.md: not the
// code of grid-node/replica, but a specification of it that is read in a
// quarter of an hour, with every interleaving of its actions tried.
//
// It is written as one writes TLA+. State is everything there is: the processes,
// the arbiter's record with its history, what is under way in the network, and
// what clients were told. An action has a guard, when it can happen, and an
// effect. Invariants are looked at in every state that can be reached. The
// search is breadth-first, so the counterexample it prints is a shortest one.
//
// Read state.go, then data.go (orders), member.go and learn.go (configurations),
// fault.go, invariant.go. mutant.go lists wrong protocols that must be caught:
// a checker that cannot fail proves nothing. docs/model.md says what is covered.
package model
