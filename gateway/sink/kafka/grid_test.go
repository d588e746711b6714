package kafka_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Primaries are killed under load, and grid-sink in the midst of transactions. Each order that was acknowledged is in
// Kafka once, at its place, with the headers of the one before.
func TestGridKilled(t *testing.T) {
	kills := downstream.Kills(t, 3)
	k := broker(t)
	g := testgrid.Run(t, "--external-sink", "kafka")
	c := downstream.Dial(t, g)
	topic := fmt.Sprintf("grid%d.orders", os.Getpid())
	begin := func() *downstream.Sink {
		return downstream.StartSink(t, g, "kafka", "kafka", "--broker", k.Address, "--topic", topic, "--replication-factor", "1")
	}
	s := begin()
	acked, last := downstream.KillUnderLoad(t, c, g, kills, 100, func(i int) {
		if i%3 == 1 {
			s.Kill()
			s = begin()
		}
	})
	downstream.WaitFor(t, "the sink to hold all orders", func() bool {
		var status sink.Status
		s.Status(&status)
		for _, p := range status.Partitions {
			id, err := wire.ParsePartitionID(p.Partition)
			if err != nil {
				t.Fatal(err)
			}
			if p.Position.Seq < last[id] {
				return false
			}
		}
		return true
	})
	s.Stop()
	found := map[wire.OrderID]string{}
	records := 0
	for p := range c.Table() {
		all := committed(t, k, topic, int32(p))
		checkChain(t, all)
		for _, r := range all {
			found[idOf(t, r)] = string(r.Key)
		}
		records += len(all)
	}
	for id, clOrdID := range acked {
		if found[id] != clOrdID {
			t.Errorf("order %s was acknowledged as %s, and is in Kafka as %q", clOrdID, id, found[id])
		}
	}
	if records != len(found) || len(found) != len(acked) {
		t.Errorf("%d records of %d orders in Kafka, %d acknowledged", records, len(found), len(acked))
	}
	t.Logf("%d primaries killed, %d times grid-sink; %d orders acknowledged, %d records in Kafka", kills, (kills+1)/3, len(acked), records)
}

func idOf(t *testing.T, r *kgo.Record) wire.OrderID {
	t.Helper()
	p, err := wire.ParsePartitionID(header(r, kafka.HeaderPartition))
	if err != nil {
		t.Fatal(err)
	}
	seq, err := strconv.ParseUint(header(r, kafka.HeaderSeq), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return wire.OrderID{Partition: p, Seq: seq}
}
