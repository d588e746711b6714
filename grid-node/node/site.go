package node

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// siteOf takes over what a record has of a pair of sites.
func siteOf(rec arbiter.Record, c *replica.Config) error {
	s := &rec.Spec
	if err := s.CheckSite(); err != nil {
		return err
	}
	if rec.Term > arbiter.MaxTerm {
		return fmt.Errorf("term is %d, allowed: at most %d", rec.Term, arbiter.MaxTerm)
	}
	c.Standby, c.Term = rec.Standby, rec.Term
	c.WantStandby, c.Source = s.Standby, s.Source
	c.Promotion = replica.Promotion{Term: s.Promote.Term, Seq: s.Promote.Seq, Hash: s.Promote.HashValue(), Forced: s.Promote.Forced}
	c.Demotion = replica.Demotion{Wanted: s.Demote.Wanted, Term: s.Demote.Term}
	return nil
}
