// Package replica is the replication protocol of one partition, without I/O: no
// goroutine, no socket, no clock, no randomness. The node and the simulator run
// the same code:
//
//	r.Step(now, &event, &outbox) // any number of times per wake-up
//	r.Step(now, &Event{Kind: EventFlush}, &outbox)
//	for i := range outbox.Actions { ... }
//	outbox.Reset()
//
// Step is deterministic: equal events at equal times give equal actions. One
// thread calls it. Between two flushes nothing is sent to other replicas, so
// that all frames of a wake-up leave in one write and nothing waits for a timer.
//
// A file per phase: claim.go (bootstrap), submit.go and prepare.go (the write
// path), commit.go (acknowledging), session.go (exactly once), reads.go,
// vitals.go and publish.go (heartbeats), beacon.go (requesting an answer), shrink.go (the primary drops a member),
// takeover.go (a backup promotes itself), join.go and feed.go (a learner
// catches up and is admitted), config.go and propose.go (adopting and changing configurations),
// cursor.go (write-behind), drain.go (planned stop), standby.go, promote.go,
// demote.go and fence.go (a copy of another site's log). What an entry changes is in
// grid-node/machine; apply.go gives every entry to it.
package replica
