package ordergrid

import (
	"strconv"
	"strings"
)

// partitionsPerShard is how many partitions every shard has. An order's partition depends on it, so it is what
// spec.replicas was when the grid was made, whatever that is now: the records tell, and what status said of them, since a
// record that was lost still counts.
func (o *observation) partitionsPerShard() int32 {
	most, claimed := o.saidPartitions, o.saidPartitions > 0
	for i := range o.partitions {
		most, claimed = max(most, o.partitions[i].Spec.Index+1), claimed || o.partitions[i].Status.Epoch > 0
	}
	for _, s := range o.grid.Status.Partitions {
		if index, ok := partitionIndex(s.Name); ok && index >= most {
			most, claimed = index+1, true
		}
	}
	// While nobody holds an order yet, pods that were told of a number of partitions keep to it all the same.
	if claimed || most > 0 && len(o.statefulSets) > 0 {
		return most
	}
	return o.grid.Spec.Replicas
}

// partitionIndex is the number of a partition within its shard, from the name of its record.
func partitionIndex(name string) (int32, bool) {
	at := strings.LastIndex(name, "-p")
	if at < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(name[at+2:], 10, 8)
	return int32(n), err == nil
}
