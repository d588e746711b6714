package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Kinds are what a Selector lets through.
type Kinds uint16

// Kinds of a Selector. Of one kind of executions: KindExecution.
const (
	KindOrders     = Kinds(wire.SelectOrders)
	KindExecutions = Kinds(wire.SelectExecutions)
	// KindOther is entries that are no orders, of a Selector with neither account nor symbol.
	KindOther = Kinds(wire.SelectOther)
)

// KindExecution is executions of one kind, ExecAccepted to ExecTriggered.
func KindExecution(k ExecutionKind) Kinds { return 1 << k & KindExecutions }

// Selector lets through what is of an account (FIX tag 1) and of a symbol (tag 55).
type Selector struct {
	Kinds           Kinds
	Account, Symbol string // empty: of any
}

// Selection is what a follower gets: what any of the selectors lets through, without selectors nothing.
type Selection struct {
	Selectors []Selector
	// Quiet is how much later at most it is told of entries that are not let through, 1 ms to 1 s; 100 ms when 0.
	Quiet time.Duration
}

const defaultQuiet = 100 * time.Millisecond

// check returns why a selection is not valid.
func (s *Selection) check() error {
	size := wire.SelectSize
	for i := range s.Selectors {
		k := &s.Selectors[i]
		size += wire.SelectorSize(len(k.Account), len(k.Symbol))
		switch {
		case len(k.Account) > wire.MaxSelectedValue || len(k.Symbol) > wire.MaxSelectedValue:
			return fmt.Errorf("client: Selectors[%d] is of account %.80q and symbol %.80q, allowed: at most %d bytes each", i, k.Account, k.Symbol, wire.MaxSelectedValue)
		case k.Kinds == 0 || k.Kinds&^(KindOrders|KindExecutions|KindOther) != 0 || k.Kinds&KindOther != 0 && k.Account+k.Symbol != "":
			return fmt.Errorf("client: Selectors[%d].Kinds is %#x, allowed: one kind at least, and KindOther with neither Account nor Symbol", i, k.Kinds)
		}
	}
	switch {
	case len(s.Selectors) > wire.MaxSelectors || size > wire.MaxSelectSize:
		return fmt.Errorf("client: Selectors are %d of %d bytes, allowed: at most %d of %d bytes", len(s.Selectors), size, wire.MaxSelectors, wire.MaxSelectSize)
	case s.Quiet != 0 && (s.Quiet < time.Millisecond || s.Quiet > wire.MaxQuietMs*time.Millisecond):
		return fmt.Errorf("client: Selection.Quiet is %s, allowed: 1ms to %s, or 0 for %s", s.Quiet, wire.MaxQuietMs*time.Millisecond, defaultQuiet)
	}
	return nil
}

// numbered is a selection with the number that Select returned.
type numbered struct {
	Selection
	number uint32
}

// Select has the follower get something else from a later entry on, which FollowBatch.SelectedFrom tells in batches with the
// number that is returned; numbers rise by one from 1, that of FollowOptions.Selection. It is for any goroutine, one at a
// time, and returns at once. What s refers to must not be changed.
func (f *Follower) Select(s Selection) (number uint32, err error) {
	before := f.selection.Load()
	switch {
	case before == nil:
		return 0, fmt.Errorf("client: Select of a follower of %s without FollowOptions.Selection, allowed: with one", f.o.Partition)
	default:
		err = s.check()
	}
	if err != nil {
		return 0, err
	}
	number = before.number + 1
	f.selection.Store(&numbered{s, number})
	return number, nil
}

// errUnselected: the replica knows no selections.
var errUnselected = errors.New("the replica takes no Selection: it is of a release before; update the nodes first")

// unselected is the error of a replica that closed the connection upon a request with a Selection, for good if that was why.
func unselected(p wire.PartitionID, err error) error {
	var goaway *GoawayError
	if errors.As(err, &goaway) && goaway.Code == wire.GoawayProtocol {
		return fmt.Errorf("client: follow %s: %w: %w", p, errUnselected, err)
	}
	return err
}

// selectFrame is the frame of the present selection.
func (f *Follower) selectFrame() []byte {
	s := f.selection.Load()
	m := wire.StreamSelect{ReqID: f.reqID, Version: s.number, QuietMs: uint16(cmp.Or(s.Quiet, defaultQuiet) / time.Millisecond)}
	for i := range s.Selectors {
		k := &s.Selectors[i]
		m.Selectors = append(m.Selectors, wire.Selector{What: uint16(k.Kinds), Account: []byte(k.Account), Symbol: []byte(k.Symbol)})
	}
	f.selectSent = s.number
	return wire.AppendStreamSelect(nil, f.o.Partition, &m)
}

// sendSelection tells the node of a selection that it was not told of.
func (f *Follower) sendSelection(ctx context.Context) error {
	if s := f.selection.Load(); s == nil || s.number == f.selectSent {
		return nil
	}
	return f.send(ctx, f.selectFrame())
}

// selected notes from where on the node selects.
func (f *Follower) selected(frame []byte) error {
	var m wire.StreamSelected
	err := wire.DecodeStreamSelected(frame, &m)
	if err == nil && (m.From <= f.after.Seq && !f.atEnd || m.Version > f.selectSent) {
		err = fmt.Errorf("selection %d from entry %d, allowed: up to %d, behind entry %d", m.Version, m.From, f.selectSent, f.after.Seq)
	}
	if err != nil {
		return &ProtocolError{Address: f.conn.addr, What: "stream-selected", Cause: err}
	}
	f.batch.Selection, f.batch.SelectedFrom = m.Version, m.From
	return nil
}
