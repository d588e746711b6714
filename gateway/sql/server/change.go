package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pending is a statement that changes a region and that was executed in the extended protocol. It runs at Sync: whatever
// comes before that is of one transaction with it, and could not be undone with it.
type pending struct {
	portal *portal
	most   uint32
	closes []pgproto3.Close // that came behind it
	names  int              // bytes of their names
}

// Bounds of the Close messages behind a change, which are kept until Sync.
const (
	maxCloses     = 64
	maxCloseNames = 64 << 10
)

// inBlockAlone is the error of a change beside other statements.
func inBlockAlone(where string) *sql.Error {
	e := sql.Refuse(sql.StateActive, "a change of a region cannot run %s", where)
	e.Hint = "It is made when it is made and cannot be rolled back: send it alone, with autocommit."
	return e
}

// settle takes the message behind a change that is pending; true: it was taken.
func (c *conn) settle(m pgproto3.FrontendMessage) bool {
	p := c.pending
	switch m := m.(type) {
	case *pgproto3.Close:
		if p.names += len(m.Name); len(p.closes) == maxCloses || p.names > maxCloseNames {
			c.pending = nil
			c.extended(inBlockAlone(fmt.Sprintf("before more than %d messages Close, with names of %d bytes", maxCloses, maxCloseNames)), "")
			return true
		}
		p.closes = append(p.closes, *m)
		return true
	case *pgproto3.Sync:
		c.pending = nil
		c.extended(c.change(p.portal, p.most), p.portal.st.text)
		for i := range p.closes {
			if !c.skipping {
				c.closeNamed(&p.closes[i])
			}
		}
		return false
	case *pgproto3.Terminate:
		return false
	}
	c.pending = nil
	c.extended(inBlockAlone("before other statements of a pipeline"), "")
	return true
}

// change runs a statement that changes a region, and sends the rows that it answers.
func (c *conn) change(pl *portal, most uint32) *sql.Error {
	x, region := pl.plan.Change, pl.plan.Region
	keys := len(x.Entries)
	if x.Verb != sql.Insert && region.Reads() {
		keys = len(region.Keys)
	}
	switch {
	case c.settings.readOnly():
		return pl.st.parsed.(*sql.Write).ReadOnly()
	case pl.ended:
		return sql.Refuse(sql.StateNotReady, "portal cannot be run any more")
	case c.tx != idle:
		return inBlockAlone("inside a transaction block")
	case x.Returning && most > 0 && int(most) < keys:
		return sql.Refuse(sql.StateUnsupported, "fetching the rows of a change in parts: not supported")
	}
	if c.allowed != nil {
		needs := access.Write
		if x.Reads {
			needs |= access.Read
		}
		if err := c.allowed(needs, region.Name); err != nil {
			err.Hint = "A rule of spec.security.authorization gives a user the permission Write for changes, and Read for UPDATE, and DELETE with further conditions."
			return err
		}
	}
	pl.ended = true
	ctx, end := c.begin()
	defer end()
	c.s.statements.Add(1)
	w := writer{c: c, pl: pl, x: x, r: c.grid.Region(region.Name)}
	err := w.run(ctx)
	if err != nil {
		return w.failed(ctx, err, keys)
	}
	tag := fmt.Sprintf("%s %d", x.Verb, w.made)
	if x.Verb == sql.Insert {
		tag = fmt.Sprintf("INSERT 0 %d", w.made)
	}
	c.be.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
	return nil
}

// writer makes the changes of a statement, one after the other, each exactly once.
type writer struct {
	c       *conn
	pl      *portal
	x       *sql.Change
	r       *client.Region
	made    int // that changed something
	key     string
	buf     []byte
	pending int
}

func (w *writer) run(ctx context.Context) error {
	if w.x.Verb == sql.Insert {
		for i := range w.x.Entries {
			if err := w.insert(ctx, &w.x.Entries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	plan := w.pl.plan.Region
	if !plan.Reads() {
		return nil
	}
	for _, key := range plan.Keys {
		if len(key) > wire.MaxRegionPair {
			continue // it has no value
		}
		var err error
		if w.key = key; w.x.Reads {
			err = w.compareAndSet(ctx, plan)
		} else {
			err = w.remove(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func lifeOf(e *sql.Entry) []client.PutOption {
	switch {
	case e.Life < 0:
		return []client.PutOption{client.Forever()}
	case e.Life > 0:
		return []client.PutOption{client.Expires(e.Life)}
	}
	return nil
}

func (w *writer) insert(ctx context.Context, e *sql.Entry) error {
	w.key = e.Key
	options := lifeOf(e)
	if w.x.Conflict != sql.ConflictUpdate {
		options = append(options, client.IfAbsent())
	}
	receipt, err := w.r.Put(ctx, []byte(e.Key), []byte(e.Value), options...)
	var there *client.ConditionError
	switch {
	case errors.As(err, &there) && w.x.Conflict == sql.ConflictNothing:
		return nil
	case errors.As(err, &there):
		refused := sql.Refuse("23505", "duplicate key value violates unique constraint \"%s_pkey\"", w.pl.plan.Region.Name)
		refused.Detail = fmt.Sprintf("Key (key)=(%.80s) already exists, with version %d.", e.Key, there.Version)
		return refused
	case err != nil:
		return err
	}
	return w.answer(rowOf(&client.Entry{Key: []byte(e.Key), Value: []byte(e.Value), Version: receipt.Seq, Partition: receipt.Partition}))
}

// compareAndSet reads an entry, and changes it if it is a row of the statement and the version is still the one that was
// read; with another one it is read again.
func (w *writer) compareAndSet(ctx context.Context, plan *sql.Region) error {
	for {
		one, err := w.r.Get(ctx, []byte(w.key), client.WithMode(client.Confirmed))
		if errors.Is(err, client.ErrNotFound) {
			return nil
		}
		if err != nil {
			return &readError{err}
		}
		row := rowOf(&one)
		if has, err := plan.Has(row); err != nil || !has {
			return orNil(err)
		}
		if w.x.Verb == sql.Delete {
			_, err = w.r.RemoveIf(ctx, one.Key, one.Version)
		} else {
			e, bad := w.x.New(row)
			if bad != nil {
				return bad
			}
			var receipt client.Receipt
			receipt, err = w.r.PutIf(ctx, one.Key, []byte(e.Value), one.Version, lifeOf(&e)...)
			row = rowOf(&client.Entry{Key: one.Key, Value: []byte(e.Value), Version: receipt.Seq, Partition: one.Partition})
		}
		var changed *client.ConditionError
		if errors.As(err, &changed) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		return w.answer(row)
	}
}

// orNil is an error of the statement as an error.
func orNil(e *sql.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// remove removes a key by itself: with RETURNING its value is taken, by this statement alone.
func (w *writer) remove(ctx context.Context) error {
	if !w.x.Returning {
		there, err := w.r.Remove(ctx, []byte(w.key))
		if err == nil && there {
			w.made++
		}
		return err
	}
	value, receipt, err := w.r.Take(ctx, []byte(w.key))
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.answer(rowOf(&client.Entry{Key: []byte(w.key), Value: value, Partition: receipt.Partition}))
}

// answer counts a change, and sends its row.
func (w *writer) answer(row []view.Value) error {
	w.made++
	if !w.x.Returning {
		return nil
	}
	cells, buf, bad := w.pl.plan.Encode(nil, w.buf[:0], row, w.pl.formats)
	if bad != nil {
		return bad
	}
	w.buf = buf
	w.c.be.Send(&pgproto3.DataRow{Values: cells})
	if w.pending += len(buf); w.pending < flushBytes {
		return nil
	}
	w.pending = 0
	if err := w.c.be.Flush(); err != nil {
		return sql.Refuse("08006", "connection failure: %s", err)
	}
	return nil
}

// readError is of the read before a change: nothing was changed.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// failed is what a client is told. An error means that nothing was changed, as in PostgreSQL, unless it is 08007.
func (w *writer) failed(ctx context.Context, err error, keys int) *sql.Error {
	e := w.c.changeError(ctx, err, w.pl.plan.Region.Name)
	if w.made == 0 {
		return e
	}
	out := sql.Refuse(sql.StateUnknownOutcome, "%d of %d changes were made, then one failed: %s", w.made, keys, e.Message)
	out.Detail = fmt.Sprintf("Keys are changed in their order. The one that failed, with SQLSTATE %s, is %.80q.", e.Code, w.key)
	out.Hint = "Changes of several keys are no transaction. Read the keys."
	return out
}

// changeError is what the error of a change means.
func (c *conn) changeError(ctx context.Context, err error, region string) *sql.Error {
	var refused *sql.Error
	var read *readError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &read):
		return c.explain(ctx, read.err, region)
	case errors.Is(err, client.ErrUnknownOutcome):
		e := sql.Refuse(sql.StateUnknownOutcome, "the change was sent and not answered, so it may have been made: %s", err)
		e.Hint = "Read the key before the change is made again."
		return e
	case errors.Is(err, client.ErrNotPermitted):
		e := gridError(err, region, c.release == nil)
		e.Hint = "Changes need the permissions Submit and Write, and Read for UPDATE, and DELETE with further conditions."
		return e
	case errors.Is(err, client.ErrCapacity):
		return sql.Refuse("53200", "%s", err)
	case errors.Is(err, client.ErrTooLarge):
		return sql.Refuse(sql.StateTooLarge, "%s", err)
	case errors.Is(err, client.ErrStandby), errors.Is(err, client.ErrFenced):
		return sql.Refuse(sql.StateReadOnly, "%s", err)
	case errors.Is(err, client.ErrRegionUnknown), errors.Is(err, client.ErrUnauthenticated):
		return gridError(err, region, c.release == nil)
	case errors.Is(err, client.ErrNotSent) && ctx.Err() != nil:
		return c.explain(ctx, err, region)
	case errors.Is(err, client.ErrNotSent), errors.Is(err, client.ErrInsufficientInSync), errors.Is(err, client.ErrOverloaded), errors.Is(err, client.ErrDraining):
		return sql.Refuse(sql.StateCannotConnect, "%s", err)
	case client.FateOf(err) == client.FateUnknown:
		return sql.Refuse(sql.StateUnknownOutcome, "whether the change was made is not known: %s", err)
	}
	return sql.Refuse(sql.StateStorage, "%s", err)
}

// mayChange refuses statements that change something where the connection is for reading.
func (c *conn) mayChange(w *sql.Write) *sql.Error {
	if c.settings.readOnly() {
		return w.ReadOnly()
	}
	return nil
}

// alone refuses a change among other statements of one text.
func alone(all []sql.Parsed) *sql.Error {
	if len(all) > 1 && slices.ContainsFunc(all, func(p sql.Parsed) bool { _, is := p.Statement.(*sql.Write); return is }) {
		return inBlockAlone("with other statements in one text, which are one transaction")
	}
	return nil
}
