package replica_test

import (
	"strconv"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// scriptComputer has one function, count: it adds one to the number that a key has, and fails with
// that number where it is the one of the arguments or more.
type scriptComputer struct{}

// scriptComputes gives a process a region and the function.
func scriptComputes(yes bool, o *replica.Options) {
	if yes {
		o.Regions = &replica.Regions{Bytes: 16 << 20, Regions: []replica.RegionSpec{{Name: "positions"}}}
		o.Compute = scriptComputer{}
	}
}

func (scriptComputer) Names() []string { return []string{"count"} }

func (scriptComputer) Compute(c *replica.Call) replica.Computed {
	n, _ := strconv.Atoi(string(c.Value))
	if most, err := strconv.Atoi(string(c.Args)); err == nil && n >= most {
		return replica.Computed{Kind: replica.CallFailed, Code: uint32(n), Text: []byte("it has that many")}
	}
	next := strconv.AppendInt(nil, int64(n+1), 10)
	return replica.Computed{Kind: replica.CallSet, Value: next, Reply: next}
}

// invoke calls count with a key.
func (s *script) invoke(d *datadriven.TestData, n *node, client uint64) {
	var seq int
	key, most := "k", ""
	arg(d, "seq", &seq)
	arg(d, "key", &key)
	arg(d, "most", &most)
	k := s.sessions[client]
	s.send(n, client, wire.AppendInvoke(nil, partition, &wire.Invoke{
		Slot: k.slot, Generation: k.generation, ClientSeq: uint64(seq), Region: []byte("positions"), Function: []byte("count"), Key: []byte(key), Args: []byte(most),
	}))
}
