package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Kill names what may not enter orders, and why. Needs the permission Risk.
type Kill struct {
	Scope order.GuardScope
	// Name of the trader, desk, algorithm or client, or the id of the session in 32
	// hexadecimal digits; empty for all.
	Name string
	Why  string // for the log, 1..400 bytes
	// Who is for the log of a grid without authentication; elsewhere it is the identity
	// that the node knows.
	Who string
}

// KillResult is the log entry of a partition that has a kill or its end.
type KillResult struct {
	Partition wire.PartitionID
	Entry     uint64
	Time      time.Time // of the entry
	Was       bool      // it was so before
	Err       error     // it is unknown whether the partition has it; repeat the call
}

// Kill stops orders in all partitions. Where it returns no error, no order is accepted behind
// the entry, whichever node is the primary, until an Unkill; cancels are. It may be repeated.
// The error is that of the partitions without an answer, joined.
func (c *Client) Kill(ctx context.Context, k Kill) ([]KillResult, error) {
	return c.killAll(ctx, wire.KillOn, k)
}

// Unkill ends a Kill of the same scope and name, and the halt of an algorithm after repeated
// executions.
func (c *Client) Unkill(ctx context.Context, k Kill) ([]KillResult, error) {
	return c.killAll(ctx, wire.KillOff, k)
}

func (c *Client) killAll(ctx context.Context, op uint8, k Kill) ([]KillResult, error) {
	if k.Why == "" || len(k.Why) > order.MaxGuardWhy || len(k.Name) > order.MaxGuardName || (k.Scope == order.GuardAll) != (k.Name == "") || k.Scope > order.GuardAll {
		return nil, fmt.Errorf("client: kill of %v %.80q because of %.80q, allowed: a name of 1..%d bytes, none for all, and a reason of 1..%d",
			k.Scope, k.Name, k.Why, order.MaxGuardName, order.MaxGuardWhy)
	}
	results := make([]KillResult, len(c.Table()))
	c.each(func(p wire.PartitionID) error {
		var m wire.KillDone
		_, err := c.retry(ctx, p, false, func(ctx context.Context, addr string) error {
			return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
				return wire.AppendKill(dst, p, &wire.Kill{ReqID: reqID, Op: op, Scope: uint8(k.Scope), Name: []byte(k.Name), Who: []byte(k.Who), Why: []byte(k.Why)})
			}, func(frame []byte) error { return wire.DecodeKillDone(frame, &m) })
		})
		results[p] = KillResult{Partition: p, Entry: m.Entry, Time: time.Unix(0, m.TimeNs), Was: m.Was, Err: err}
		return err
	})
	var errs []error
	for i := range results {
		if err := results[i].Err; err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", results[i].Partition, err))
		}
	}
	return results, errors.Join(errs...)
}

// each calls fn for all partitions, a few at a time.
func (c *Client) each(fn func(wire.PartitionID) error) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for p := range wire.PartitionID(len(c.Table())) {
		slots <- struct{}{}
		wg.Go(func() {
			_ = fn(p)
			<-slots
		})
	}
	wg.Wait()
}

// ActiveKill is a kill in effect in a partition.
type ActiveKill struct {
	Scope    order.GuardScope
	Name     string
	Who, Why string
	Time     time.Time
	Entry    uint64
}

// Limits are those in force in a partition.
type Limits struct {
	Partition wire.PartitionID
	CommitSeq uint64
	Profile   string // as docs/limits.md has it; empty: none
	Who       string // the node that put the profile in force
	Time      time.Time
	Entry     uint64
	Kills     []ActiveKill // oldest first
}

// Limits reads what is in force in each partition, by its primary. Needs the permission Risk.
func (c *Client) Limits(ctx context.Context) ([]Limits, error) {
	all, errs := make([]Limits, len(c.Table())), make([]error, len(c.Table()))
	c.each(func(p wire.PartitionID) error {
		_, err := c.retry(ctx, p, false, func(ctx context.Context, addr string) error {
			return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
				return wire.AppendReadLimits(dst, p, &wire.ReadLimits{ReqID: reqID})
			}, func(frame []byte) error {
				var m wire.LimitsAre
				if err := wire.DecodeLimitsAre(frame, &m); err != nil {
					return err
				}
				all[p] = limitsOf(p, &m)
				return nil
			})
		})
		if err != nil {
			errs[p] = fmt.Errorf("%s: %w", p, err)
		}
		return err
	})
	return all, errors.Join(errs...)
}

func limitsOf(p wire.PartitionID, m *wire.LimitsAre) Limits {
	l := Limits{Partition: p, CommitSeq: m.CommitSeq, Profile: string(m.Text), Who: string(m.Who), Entry: m.Entry}
	if l.Entry != 0 {
		l.Time = time.Unix(0, m.TimeNs)
	}
	for i := range m.Kills {
		k := &m.Kills[i]
		l.Kills = append(l.Kills, ActiveKill{Scope: order.GuardScope(k.Scope), Name: string(k.Name), Who: string(k.Who), Why: string(k.Why),
			Time: time.Unix(0, k.TimeNs), Entry: k.Entry})
	}
	return l
}

// KillState is how far a kill is in a partition.
type KillState uint8

// States of a kill.
const (
	KillNone       KillState = 0 // none of this scope and name is in effect
	KillRefuses    KillState = 1 // it refuses orders and cancels none: the grid stores them, or a copy is of a release before
	KillCancelling KillState = 2 // orders that it means still rest
	KillComplete   KillState = 3 // none does
)

// KillCount is what a kill has cancelled in a partition.
type KillCount struct {
	Partition wire.PartitionID
	State     KillState
	Entry     uint64 // of the kill, 0 for none
	Complete  uint64 // the entry with which the last order was cancelled; 0 unless KillComplete
	Cancelled uint64 // orders; 0 unless KillComplete
	Err       error
}

// KillCounts reads from the primaries how far a kill in effect is, which is committed. Needs the
// permission Risk. The error is that of the partitions without an answer, joined.
func (c *Client) KillCounts(ctx context.Context, scope order.GuardScope, name string) ([]KillCount, error) {
	counts := make([]KillCount, len(c.Table()))
	c.each(func(p wire.PartitionID) error {
		var m wire.KillIs
		_, err := c.retry(ctx, p, false, func(ctx context.Context, addr string) error {
			return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
				return wire.AppendReadKill(dst, p, &wire.ReadKill{ReqID: reqID, Scope: uint8(scope), Name: []byte(name)})
			}, func(frame []byte) error { return wire.DecodeKillIs(frame, &m) })
		})
		counts[p] = KillCount{Partition: p, State: KillState(m.State), Entry: m.Entry, Complete: m.Complete, Cancelled: m.Cancelled, Err: err}
		return err
	})
	var errs []error
	for i := range counts {
		if err := counts[i].Err; err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", counts[i].Partition, err))
		}
	}
	return counts, errors.Join(errs...)
}
