package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Target is what rows are loaded into: the Orders of a grid, or the Values of a region.
type Target interface {
	// manner is how rows are put, which is what a load is resumed with.
	manner() manner
	// check completes a row that was read, or returns why the grid would not take it.
	check(r *row) *Refusal
	// begin sends a row without waiting. client.ErrWindowFull: nothing was sent, and done will not run.
	begin(r *row, done func(client.Receipt, error)) error
	// send sends a row and waits.
	send(ctx context.Context, r *row) error
	// final reports whether the grid refuses the row whenever it is sent.
	final(err error) bool
	// ends returns why no row can be loaded, whenever it is sent, with the remedy; nil: the error is not of this kind.
	ends(err error) error
	// open reports whether what the grid has decides: the outcome is not known, or something is in the row's place.
	open(err error) bool
	// look reports what the grid has in the row's place, after an outcome that left it open. The error of other is the refusal,
	// of nothing why the row cannot be sent at once.
	look(ctx context.Context, r *row, why error) (found, error)
}

// manner is how rows are put.
type manner struct {
	text  string // behind the name of what is loaded into: another text is another load
	again string // what rows do that are sent once more, because the state is gone
	once  bool   // a load that has ended is not run again, so its state stays
}

// found is what the grid has in the place of a row.
type found uint8

const (
	nothing found = iota // the row is to be sent
	same                 // this row
	other                // another one, which stays
)

// Orders is the target of a source of orders.
func Orders(c *client.Client) Target { return orders{c} }

type orders struct{ c *client.Client }

func (orders) manner() manner {
	return manner{again: "rows that the grid has are left as they are", once: true}
}

func (o orders) check(r *row) *Refusal {
	var parsed order.Order
	if err := order.Parse(r.message, &parsed); err != nil {
		return &Refusal{By: "source", Tag: err.Tag, Reason: err.Error()}
	}
	r.clOrdID = string(r.message[parsed.ClOrdIDOff:][:parsed.ClOrdIDLen])
	return nil
}

func (o orders) begin(r *row, done func(client.Receipt, error)) error {
	return o.c.SubmitAsync(r.message, done)
}

func (o orders) send(ctx context.Context, r *row) error {
	_, err := o.c.Submit(ctx, r.message)
	return err
}

func (o orders) final(err error) bool {
	return errors.Is(err, client.ErrBadFIX) || errors.Is(err, client.ErrTooLarge)
}

func (orders) ends(err error) error {
	if errors.Is(err, client.ErrNotPermitted) {
		return fmt.Errorf("the grid: %w; allowed: the permissions Submit and Read for this client", err)
	}
	return nil
}

func (o orders) open(err error) bool {
	return errors.Is(err, client.ErrDuplicateClOrdID) || client.FateOf(err) == client.FateUnknown
}

func (o orders) look(ctx context.Context, r *row, why error) (found, error) {
	is, err := o.c.GetByClOrdID(ctx, r.clOrdID)
	switch {
	case err == nil && bytes.Equal(is.FIX, r.message):
		return same, nil
	case err == nil:
		return other, fmt.Errorf("order %s has this ClOrdID, and is another message: %w", is.ID, why)
	case errors.Is(err, client.ErrFreed):
		return other, fmt.Errorf("an order of this ClOrdID may be freed, so it cannot be compared: look downstream: %w", why)
	case errors.Is(err, client.ErrNotFound) && !errors.Is(why, client.ErrDuplicateClOrdID):
		return nothing, nil
	}
	return nothing, err
}

// Puts is how Values are put. It is part of what a state is of: a load is resumed with the Puts that it began with.
type Puts struct {
	Replace bool          // a row replaces another value of its key
	Life    time.Duration // of a value, from when it is put; 0: as the region has it
	Forever bool          // values do not expire, whatever the region has
}

// Values is the target of a source of Entries. A row sets the value of a key that has none; a key that has this very value
// is present, and one that has another refuses the row, unless the row replaces it. Rows of one key are settled in the order
// of the source. When such a load has ended its state is removed: values change, and are removed and expire, so the same
// source may be loaded again.
func Values(r *client.Region, p Puts) Target {
	v := &values{r: r, puts: p}
	if !p.Replace {
		v.opts = append(v.opts, client.IfAbsent())
	}
	switch {
	case p.Forever:
		v.opts = append(v.opts, client.Forever())
	case p.Life > 0:
		v.opts = append(v.opts, client.Expires(p.Life))
	}
	return v
}

type values struct {
	r    *client.Region
	puts Puts
	opts []client.PutOption
}

func (v *values) manner() manner {
	m := manner{text: ", keys without a value", again: "rows that the region has are left as they are"}
	if v.puts.Replace {
		m = manner{text: ", replacing values", again: "rows are put again, over what others have written to their keys since"}
	}
	switch {
	case v.puts.Forever:
		m.text += ", for ever"
	case v.puts.Life > 0:
		m.text += fmt.Sprintf(", life %v", v.puts.Life)
	}
	return m
}

func (v *values) check(r *row) *Refusal {
	if n := len(r.key) + len(r.message); len(r.key) == 0 || n > wire.MaxRegionPair {
		return &Refusal{By: "source", Reason: fmt.Sprintf("key has %d bytes, value %d, allowed: a key of 1 or more, together at most %d", len(r.key), len(r.message), wire.MaxRegionPair)}
	}
	r.alone = string(r.key)
	return nil
}

func (v *values) begin(r *row, done func(client.Receipt, error)) error {
	return v.r.PutAsync(r.key, r.message, done, v.opts...)
}

func (v *values) send(ctx context.Context, r *row) error {
	_, err := v.r.Put(ctx, r.key, r.message, v.opts...)
	return err
}

func (v *values) final(err error) bool { return errors.Is(err, client.ErrTooLarge) }

func (v *values) ends(err error) error {
	if errors.Is(err, client.ErrNotPermitted) || errors.Is(err, client.ErrRegionUnknown) {
		return fmt.Errorf("the region: %w; allowed: a region of spec.regions of the grid, and the permissions Submit, Write and Read for this client", err)
	}
	return nil
}

func (v *values) open(err error) bool {
	return errors.Is(err, client.ErrConditionFailed) || client.FateOf(err) == client.FateUnknown
}

func (v *values) look(ctx context.Context, r *row, why error) (found, error) {
	e, err := v.r.Get(ctx, r.key)
	switch {
	case err == nil && bytes.Equal(e.Value, r.message):
		return same, nil
	case err == nil && !v.puts.Replace:
		return other, fmt.Errorf("the key has another value, of version %d: %w", e.Version, why)
	case err == nil, errors.Is(err, client.ErrNotFound):
		return nothing, nil
	}
	return nothing, err
}
