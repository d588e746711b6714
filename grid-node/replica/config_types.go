package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Member is one incarnation of a replica.
type Member struct {
	ID      string // "<pod>/<bootID>", see wire.ParseMemberID
	Boot    uint64 // the boot id of ID: what frames between replicas carry; never 0
	Address string // "ip:port" of its data port
}

// NewMember parses a member id.
func NewMember(id, address string) (Member, error) {
	_, boot, err := wire.ParseMemberID(id)
	if err != nil {
		return Member{}, err
	}
	return Member{ID: id, Boot: boot, Address: address}, nil
}

// Pod returns the pod name of the member.
func (m Member) Pod() string {
	pod, _, _ := wire.ParseMemberID(m.ID)
	return pod
}

// Config is the configuration record of a partition as the arbiter holds it.
// Values passed to and from Step are never changed afterwards by either side.
type Config struct {
	Version  string // the arbiter's version (resourceVersion) of this content
	Epoch    uint64 // 0: the partition is unclaimed, unless the record is Copied
	Copied   bool   // the record was recreated without its status: at epoch 0 the holders of orders are unknown
	Lineage  uint64
	ChangeID string // made by the proposer, so that it recognises its own change
	Primary  Member
	InSync   []Member // contains Primary; 1..4
	// Standby: the entries come from another site, see standby.go. It begins with the first
	// claim, as WantStandby says, or a demotion, and ends with a promotion.
	Standby bool
	Term    uint64 // of the site: rises with each promotion
	// From the spec of the record; not part of a proposal.
	Replicas     int      // members wanted, 1..3; 0: as in Options
	MinInSync    int      // fewer in-sync members reject writes; 0: as in Options
	MaxInSync    int      // most members; above it the pod with the largest name is removed; below Replicas: as Replicas
	Pods         []string // names of the pods that hold a copy, 1..4; MaxInSync is ignored then. nil: every pod may
	Restore      *Restore // what the first claim restores, see restore.go; nil: the partition begins empty
	PreferredPod string   // should be primary: claims an unclaimed partition first, is handed a claimed one; "": as in Options
	WantStandby  bool     // the first claim makes it a standby
	Source       string   // of a standby: name and address of the other site, for clients
	// Decisions of an administrator about this record; see recover.go. Zero values mean
	// none.
	Promotion        Promotion
	Demotion         Demotion
	AcceptLossEpoch  uint64 // entries held only by the in-sync members of this epoch may be lost
	ReassertChangeID string // the configuration of this change id is the true one, whatever the record shows
}

// Has reports whether the incarnation with this boot id is in sync.
func (c *Config) Has(boot uint64) bool {
	for i := range c.InSync {
		if c.InSync[i].Boot == boot {
			return true
		}
	}
	return false
}

func (c *Config) String() string {
	s := fmt.Sprintf("epoch %d lineage %d primary %s inSync [", c.Epoch, c.Lineage, c.Primary.ID)
	for i := range c.InSync {
		if i > 0 {
			s += " "
		}
		s += c.InSync[i].ID
	}
	s += "]"
	if c.Standby {
		s += " standby"
	}
	if c.Term != 0 {
		s += fmt.Sprintf(" term %d", c.Term)
	}
	return s
}

// check rejects an invalid configuration; it is untrusted input.
func (c *Config) check() error {
	switch p := c.Restore; {
	case p != nil && (p.Seq == 0 || p.Lineage == 0 || p.Epoch == 0 || p.Epoch >= 1<<32-1 || p.Lineage >= 1<<32-1):
		return fmt.Errorf("configuration: restore is to entry %d of epoch %d, lineage %d, allowed: 1 or more, and epoch and lineage below 4294967295", p.Seq, p.Epoch, p.Lineage)
	case c.Epoch == 0:
		return nil
	case c.Epoch >= 1<<32:
		return fmt.Errorf("configuration: epoch is %d, allowed: below 4294967296", c.Epoch)
	case len(c.InSync) == 0 || len(c.InSync) > wire.MaxMembers:
		return fmt.Errorf("configuration of epoch %d: inSync has %d members, allowed: 1..%d", c.Epoch, len(c.InSync), wire.MaxMembers)
	case c.Primary.Boot == 0:
		return fmt.Errorf("configuration of epoch %d: primary is %q, allowed: a member id", c.Epoch, c.Primary.ID)
	case !c.Has(c.Primary.Boot):
		return fmt.Errorf("configuration of epoch %d: primary %s is not in inSync", c.Epoch, c.Primary.ID)
	}
	for i := range c.InSync {
		for j := range i {
			if c.InSync[i].Boot == c.InSync[j].Boot {
				return fmt.Errorf("configuration of epoch %d: inSync names %s twice", c.Epoch, c.InSync[i].ID)
			}
		}
	}
	return nil
}
