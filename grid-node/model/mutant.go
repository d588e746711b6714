package model

import (
	"fmt"
	"strings"
)

// Mutant is a wrong protocol. Each must be caught: docs/model.md has the table.
type Mutant uint8

// Mutants.
const (
	Correct Mutant = iota
	AckBeforeBackup
	CommitWhileShrinking
	RetireDropsFirst
	LearnerTakesOver
	AdmitBeforeAckSet
	AdmitBelowFloor
	ForgetTimedOut
	BlindPut
	ServeBeforeAnswer
	OlderRecord
	KeepsMembership
	LengthsNotHashes
	HandOverUndrained
	ReadBeforeFloor
	OldEcho
	AnswerOldEpoch
	PromiseAfterFencing
	LeaseNotWaitedOut
	LeaseForgotten
	LeaseInHandOver
	ForgetTakeOver
	NeverRepeats
	OldCopyFirst
	LearnerCounted
	StalePlan

	// Harmless in this model: see docs/model.md for why the protocol does it anyway.
	StoreAfterFencing

	// The behaviour of grid-node/replica when a hand-over is held for too long: only I6 is
	// given up.
	HandOverUnheld
)

type mutantInfo struct {
	name, text string
	harmless   bool
	except     Invariant // the one it breaks, while all others hold
}

var mutants = [...]mutantInfo{
	Correct:              {name: "none", text: "the protocol"},
	AckBeforeBackup:      {name: "ack-before-backup", text: "the primary commits without waiting for its ack set"},
	CommitWhileShrinking: {name: "commit-while-shrinking", text: "the primary continues alone before the arbiter has accepted that"},
	RetireDropsFirst:     {name: "retire-drops-first", text: "a retiring member is not waited for from the proposal on"},
	LearnerTakesOver:     {name: "learner-takes-over", text: "a learner proposes itself, and the arbiter has no rule against it"},
	AdmitBeforeAckSet:    {name: "admit-before-ack-set", text: "a learner is proposed for inSync before it is in the ack set"},
	AdmitBelowFloor:      {name: "admit-below-floor", text: "a new primary admits a learner that lacks entries it took over and has not committed itself yet"},
	ForgetTimedOut:       {name: "forget-timed-out", text: "after a proposal that timed out its proposer continues in the old epoch"},
	BlindPut:             {name: "blind-put", text: "the arbiter does not compare versions"},
	ServeBeforeAnswer:    {name: "serve-before-answer", text: "a take-over serves before the arbiter has answered"},
	OlderRecord:          {name: "older-record", text: "a lagging watch takes a process back to an earlier epoch"},
	KeepsMembership:      {name: "keeps-membership", text: "a restarted process is the member its predecessor was"},
	LengthsNotHashes:     {name: "lengths-not-hashes", text: "a dropped member keeps its log, and joins compare lengths only"},
	HandOverUndrained:    {name: "hand-over-undrained", text: "a primary becomes a backup before all its entries are committed"},
	ReadBeforeFloor:      {name: "read-before-floor", text: "a new primary answers reads before it has committed the entries it took over"},
	OldEcho:              {name: "old-echo", text: "a read is confirmed by an answer sent before it arrived"},
	AnswerOldEpoch:       {name: "answer-old-epoch", text: "a process echoes a primary whose epoch it has left"},
	PromiseAfterFencing:  {name: "promise-after-fencing", text: "a fenced backup keeps answering beacons, which renews the lease"},
	LeaseNotWaitedOut:    {name: "lease-not-waited-out", text: "a backup takes over at a reset connection without waiting for the lease"},
	LeaseForgotten:       {name: "lease-forgotten", text: "a backup new in an epoch does not wait for its promise in the previous epoch"},
	LeaseInHandOver:      {name: "lease-in-hand-over", text: "leased reads continue during a hand-over that a member stopped waiting for"},

	NeverRepeats: {name: "never-repeats", text: "a proposal is made once, and its request may be lost"},

	OldCopyFirst:   {name: "old-copy-first", text: "a copy that moves away is removed before its replacement is in sync"},
	LearnerCounted: {name: "learner-counted", text: "a copy that moves away is removed when its replacement is in the ack set, not in sync"},
	StalePlan:      {name: "stale-plan", text: "a proposal made because of a list of pods is repeated on the version with the next list"},

	StoreAfterFencing: {name: "store-after-fencing", text: "a fenced backup keeps storing and acknowledging, until the epoch moves", harmless: true},
	HandOverUnheld:    {name: "hand-over-unheld", text: "no process waits in a hand-over: each adopts it when it learns of it", harmless: true, except: I6},
	ForgetTakeOver:    {name: "forget-take-over", text: "after a take-over that timed out the backup follows its old primary again"},
}

// Mutants that must be caught.
func Mutants() []Mutant { return mutantsThat(false) }

// Variants that must not be caught, or break Except alone.
func Variants() []Mutant { return mutantsThat(true) }

// Except is the invariant that a variant gives up, Holds if none.
func (m Mutant) Except() Invariant { return mutants[m].except }

func mutantsThat(harmless bool) (all []Mutant) {
	for i, info := range mutants {
		if Mutant(i) != Correct && info.harmless == harmless {
			all = append(all, Mutant(i))
		}
	}
	return all
}

// Bounds within which the mutant is caught, where a run asks for no others.
func (m Mutant) Bounds() Bounds {
	switch m {
	case OldCopyFirst, LearnerCounted, StalePlan:
		return MoveBounds
	}
	return MutantBounds
}

func (m Mutant) String() string { return mutants[m].name }

// Text returns what is wrong with it.
func (m Mutant) Text() string { return mutants[m].text }

// trustsLengths reports whether the mutant compares lengths only.
func (m *Spec) trustsLengths() bool { return m.Mutant == LengthsNotHashes }

// Harmless reports that the invariants hold nevertheless, except for Except.
func (m Mutant) Harmless() bool { return mutants[m].harmless }

// ParseMutant finds a mutant or variant by its name.
func ParseMutant(name string) (Mutant, error) {
	names := make([]string, 0, len(mutants))
	for i, info := range mutants {
		if info.name == name {
			return Mutant(i), nil
		}
		names = append(names, info.name)
	}
	return 0, fmt.Errorf("mutant %q, allowed: %s", name, strings.Join(names, ", "))
}
