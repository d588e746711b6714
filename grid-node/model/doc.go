// Package model checks the replication protocol of docs/replication.md: not the code of
// grid-node/replica, but a specification of it that takes a quarter of an hour to read,
// with every interleaving of its actions tried.
//
// It is written in the style of TLA+. State is the whole system: the processes, the
// arbiter's record with its history, messages in flight, and the answers clients have
// seen. An action has a guard, when it can happen, and an effect. Invariants are checked
// in every reachable state. The search is breadth-first, so the counterexample it prints
// is a shortest one.
//
// Read state.go, then data.go (orders), member.go and learn.go (configurations),
// fault.go, invariant.go. mutant.go lists wrong protocols that must be caught:
// a checker that cannot fail proves nothing. docs/model.md lists what is covered.
package model
