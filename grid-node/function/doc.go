// Package function runs code of users over orders: WebAssembly modules that accept, refuse
// or change an order before it is an entry (Pre), that derive a record from an entry on
// every copy (Post), or that compute (Compute). The node calls a
// Chain of Pre functions for each order; no grid calls the others. The interface of a module is docs/functions.md, the decisions are ADR 50.
//
// A module is read by this package, not trusted: Load bounds every part of it, refuses what
// has no bound or no defined result, and rewrites each function so that it counts fuel.
// What wazero compiles is the rewritten module. Work is bounded by fuel, the depth of calls
// by a budget of stack, memory by pages; none of them by a clock, so that all copies stop
// at the same instruction.
//
// A Module is immutable; an Instance is for one goroutine. A call allocates nothing unless
// it fails. The package opens no file or socket and starts no goroutine.
//
// It runs on github.com/tetratelabs/wazero, pinned to 1.12.0: pure Go without cgo, a compiler
// for amd64 and arm64, an interpreter elsewhere. What a module computes, its fuel and the
// place where it stops do not depend on which of the two runs it.
package function
