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

// NewMember takes a member id apart.
func NewMember(id, address string) (Member, error) {
	_, boot, err := wire.ParseMemberID(id)
	if err != nil {
		return Member{}, err
	}
	return Member{ID: id, Boot: boot, Address: address}, nil
}

// Pod is the pod name of the member.
func (m Member) Pod() string {
	pod, _, _ := wire.ParseMemberID(m.ID)
	return pod
}

// Config is the configuration record of a partition as the arbiter holds it.
// Values passed to and from Step are never changed afterwards by either side.
type Config struct {
	Version  string // the arbiter's version (resourceVersion) this content was read or written at
	Epoch    uint64 // 0: nobody has claimed the partition yet, unless the record is Copied
	Copied   bool   // the record was made again, without its status: at epoch 0 it says nothing about who holds orders
	Lineage  uint64
	ChangeID string // made by the proposer, so that it recognises its own change
	Primary  Member
	InSync   []Member // contains Primary; 1..4
	// From the spec of the record; not part of a proposal.
	Replicas     int      // members wanted, 1..3; 0 keeps what Options say
	MinInSync    int      // fewer in-sync members refuse writes; 0 keeps what Options say
	MaxInSync    int      // members taken in; with more, the pod with the largest name is let go; below Replicas: as many as those
	Pods         []string // names of the pods that are to hold a copy, 1..4; MaxInSync is not looked at then. nil: every pod may
	PreferredPod string   // should be primary: claims an unclaimed partition first, is handed a claimed one; "" keeps what Options say
	// What a person decided about this record; see recover.go. Zero values mean no decision.
	AcceptLossEpoch  uint64 // what only the in-sync members of this epoch held may be lost
	ReassertChangeID string // the configuration of this change id is the true one, whatever the record shows
}

// Has says whether the incarnation with this boot id is in sync.
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
	return s + "]"
}

// check refuses what can never be a configuration; it comes from outside.
func (c *Config) check() error {
	switch {
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
