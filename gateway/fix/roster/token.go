package roster

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// NeedsToken reports whether a session is proved by a token that the grid judges.
func (r *Roster) NeedsToken() bool {
	return slices.ContainsFunc(r.entries, func(e Entry) bool { return e.User != "" })
}

// User returns the user of the grid whose token a session needs; "": none.
func (r *Roster) User(id fix.ID) string {
	if e := r.byID[id]; e != nil {
		return e.User
	}
	return ""
}

// Proves decides whether a token that the grid has accepted is good for a session: it is one of the session's user, who
// has in the grid the permission for what the session does.
func (r *Roster) Proves(id fix.ID, p *judge.Proof) error {
	needs, name := uint16(wire.MaySubmit), "Submit"
	if h := r.homes[id]; h != nil { // it reads what others do
		needs, name = wire.MayWatch, "Watch"
	}
	switch user := r.User(id); {
	case user == "" || p.User != user:
		return fmt.Errorf("session %s: the token is of user %.200q; allowed: that of %.200q", id, p.User, user)
	case p.May&needs == 0:
		return fmt.Errorf("session %s: user %.200q has not the permission %s in the grid; allowed: with a rule that gives it", id, user, name)
	}
	return nil
}
