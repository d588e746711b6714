package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Replica is one member of one partition. It is not safe for concurrent use.
type Replica struct {
	opt   Options
	store *store.Store
	part  wire.PartitionID
}

// New makes a replica that knows nothing yet: it waits for EventConfig.
func New(o Options) (*Replica, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	return &Replica{opt: o, store: o.Store, part: o.Partition}, nil
}

// Step takes one event in and adds what has to be done to out.
func (r *Replica) Step(now Time, ev *Event, out *Outbox) {
}

// Status of the replica. The Config it points to is immutable.
func (r *Replica) Status() Status { return Status{} }

// Counters of the replica, as a copy.
func (r *Replica) Counters() Counters { return Counters{} }
