package roster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// DropCopy is a session that gets a copy of each ExecutionReport of others. Who configures the
// gateway says so, no session can ask for it.
type DropCopy struct {
	Name    string `json:"name"`    // for messages
	Session string `json:"session"` // that gets the copies, such as FIX.4.4:RISK->GRID; it is in the file of the sessions
	// Partition is where it is, before a grid that stores: it gets copies of the sessions that
	// are there. Left out: where its names, or its segment, put it.
	Partition *int `json:"partition"`
	// Sessions are those whose reports are copied; left out: all of the file that get no copies.
	// One that is not in the file has no reports, and is no error.
	Sessions []string `json:"sessions"`
}

// ParseDropCopy reads the JSON form.
func ParseDropCopy(text string) (c DropCopy, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf(`drop copy %.200s: %w, allowed: JSON such as {"name": "risk", "session": "FIX.4.4:RISK->GRID", "sessions": ["FIX.4.4:BANK->GRID"]}`, text, err)
	}
	_, _, err = c.ids()
	return c, err
}

// ids returns the sessions of the drop copy.
func (c *DropCopy) ids() (target fix.ID, sources []fix.ID, err error) {
	fail := func(format string, args ...any) (fix.ID, []fix.ID, error) {
		return target, nil, fmt.Errorf("drop copy %q: %w", c.Name, fmt.Errorf(format, args...))
	}
	if target, err = fix.ParseID(c.Session); err != nil {
		return fail("%w", err)
	}
	switch {
	case c.Name == "":
		return fail("name is empty, allowed: one that messages can use")
	case target.Version == fix.FIX42:
		return fail("session is of %s, allowed: FIX.4.4, FIXT.1.1, since CopyMsgIndicator (797) is a field of these", target.Version)
	case c.Partition != nil && *c.Partition < 0:
		return fail("partition is %d, allowed: 0 or more", *c.Partition)
	}
	for _, s := range c.Sessions {
		id, err := fix.ParseID(s)
		switch {
		case err != nil:
			return fail("sessions: %w", err)
		case id == target:
			return fail("sessions has %s, the session that gets the copies, allowed: other ones", s)
		case slices.Contains(sources, id):
			return fail("sessions has %s twice, allowed: once", s)
		}
		sources = append(sources, id)
	}
	return target, sources, nil
}

// copies finds what the drop copies of the options are in this file.
func (r *Roster) copies() error {
	r.homes = map[fix.ID]*fix.Home{}
	for i := range r.options.DropCopies {
		c := &r.options.DropCopies[i]
		target, _, err := c.ids()
		if err != nil {
			return err
		}
		e := r.byID[target]
		switch {
		case e == nil:
			return fmt.Errorf("drop copy %q: session %s is not in the file, allowed: one of its sessions, with its password or certificate", c.Name, target)
		case r.homes[target] != nil:
			return fmt.Errorf("drop copy %q: session %s has a drop copy already, allowed: one for each session", c.Name, target)
		case c.Partition != nil && e.Segment != "":
			return fmt.Errorf("drop copy %q: partition is %d and session %s has segment %q, allowed: one of them", c.Name, *c.Partition, target, e.Segment)
		case e.CancelOnDisconnect != nil && e.mode != fix.CancelNever:
			return fmt.Errorf("drop copy %q: session %s has cancelOnDisconnect, allowed: none, since it enters no orders", c.Name, target)
		}
		e.mode, e.grace = fix.CancelNever, 0
		h := &fix.Home{Segment: e.Segment, Partition: -1, DropCopy: true}
		if c.Partition != nil {
			h.Partition = *c.Partition
		}
		r.homes[target] = h
	}
	for i := range r.options.DropCopies {
		if err := r.sources(&r.options.DropCopies[i]); err != nil {
			return err
		}
	}
	return nil
}

// sources finds the sessions of a drop copy, sorted.
func (r *Roster) sources(c *DropCopy) error {
	target, ids, err := c.ids()
	if err != nil {
		return err
	}
	h := r.homes[target]
	if len(c.Sessions) == 0 {
		for id := range r.byID {
			if r.homes[id] == nil {
				ids = append(ids, id)
			}
		}
	}
	for _, id := range ids {
		switch e := r.byID[id]; {
		case r.homes[id] != nil:
			return fmt.Errorf("drop copy %q: session %s gets drop copies itself, allowed: sessions that enter orders", c.Name, id)
		case e == nil:
		case len(id.Acceptor)+1+len(id.Initiator) > order.MaxCopyName:
			return fmt.Errorf("drop copy %q: CompIDs of session %s have %d bytes, allowed: together at most %d where copies are made", c.Name, id, len(id.Acceptor)+len(id.Initiator), order.MaxCopyName-1)
		default:
			h.Sources = append(h.Sources, fix.Source{ID: id, Segment: e.Segment})
		}
	}
	slices.SortFunc(h.Sources, func(a, b fix.Source) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	return nil
}

// Home returns where a session is in the grid.
func (r *Roster) Home(id fix.ID) fix.Home {
	if h := r.homes[id]; h != nil {
		return *h
	}
	h := fix.Home{Partition: -1}
	if e := r.byID[id]; e != nil {
		h.Segment = e.Segment
	}
	return h
}
