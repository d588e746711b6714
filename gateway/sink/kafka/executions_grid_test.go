package kafka_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
)

// Primaries of a grid that matches are killed while orders trade, and grid-sink in the midst of transactions. Each
// execution that the grid has is in Kafka once, behind the one before, as the grid has it. A sink of executions alone, killed
// as well, has the same ones and no order.
func TestGridExecutionsKilled(t *testing.T) {
	kills := downstream.Kills(t, 3)
	k := broker(t)
	g := testgrid.Matching(t, "--partitions", "1", "--external-sink", "kafka,alone")
	c := downstream.DialMatching(t, g)
	topic := fmt.Sprintf("matching%d", os.Getpid())
	begin := func() *downstream.Sink {
		return downstream.StartSink(t, g, "kafka", "kafka", "--broker", k.Address, "--topic", topic+".orders", "--executions-topic", topic+".executions", "--format", "json", "--replication-factor", "1")
	}
	beginAlone := func() *downstream.Sink {
		return downstream.StartSink(t, g, "kafka", "alone", "--broker", k.Address, "--only-executions", "--executions-topic", topic+".alone", "--format", "json", "--replication-factor", "1")
	}
	s, alone := begin(), beginAlone()
	acked, last := downstream.KillUnderTrading(t, c, g, kills, 100, func(i int) {
		switch i % 3 {
		case 1:
			s.Kill()
			s = begin()
		case 2:
			alone.Kill()
			alone = beginAlone()
		}
	})
	for _, s := range []*downstream.Sink{s, alone} {
		downstream.WaitFor(t, "the sink to hold all orders", func() bool {
			var status sink.Status
			s.Status(&status)
			return len(status.Partitions) == 1 && status.Partitions[0].Position.Seq >= last[0]
		})
		s.Stop()
	}
	orders := committed(t, k, topic+".orders", 0)
	checkChain(t, orders)
	for _, r := range orders {
		var got struct{ ClOrdID, OrderQty, Price, Fix string }
		if err := json.Unmarshal(r.Value, &got); err != nil || got.ClOrdID != acked[idOf(t, r)] || got.OrderQty != "100" || got.Price != "125.25" || !strings.HasPrefix(got.Fix, "8=FIX.4.2|") {
			t.Fatalf("%s: order %s, want %s (%v)", r.Value, idOf(t, r), acked[idOf(t, r)], err)
		}
	}
	if len(orders) != len(acked) {
		t.Errorf("%d orders in Kafka, %d acknowledged", len(orders), len(acked))
	}
	want := map[string]client.Execution{}
	if _, err := c.ReadExecutions(t.Context(), 0, "", 1, func(e client.Execution) error {
		if e.Kind <= client.ExecTriggered {
			want[fmt.Sprintf("%d.%d", e.Entry, e.N)] = e
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	all := committed(t, k, topic+".executions", 0)
	prev, fills := "", 0
	for _, r := range all {
		id := header(r, kafka.HeaderSeq) + "." + header(r, kafka.HeaderN)
		if header(r, kafka.HeaderPrev) != prev {
			t.Fatalf("offset %d: execution %s has prev %s, and the record before is %s", r.Offset, id, header(r, kafka.HeaderPrev), prev)
		}
		prev = id
		var got struct {
			Entry, Order, Other                  uint64
			N                                    uint32
			Kind, Symbol, Account, Side, ClOrdID string
			Price, Quantity, Leaves, Cumulative  string
			Passive                              bool
		}
		if err := json.Unmarshal(r.Value, &got); err != nil {
			t.Fatal(err)
		}
		e, there := want[id]
		delete(want, id)
		filled := e.Kind == client.ExecFilled
		if !there || got.Entry != e.Entry || got.N != e.N || got.Kind != e.Kind.String() || got.Symbol != "IBM" || got.Account != "ACC" || got.Side != fmt.Sprint(e.Side) || got.Order != e.Order || string(r.Key) != got.ClOrdID || got.Passive != e.Passive ||
			filled && (got.Price != client.Decimal(e.Price, 2) || got.Quantity != fmt.Sprint(e.Qty) || got.Leaves != fmt.Sprint(e.Leaves) || got.Cumulative != fmt.Sprint(e.Cum) || got.Other != e.Other) {
			t.Fatalf("record %s is of %+v", r.Value, e)
		}
		if filled {
			fills++
		}
	}
	for id, e := range want {
		if e.Entry <= last[0] {
			t.Errorf("execution %s is not in Kafka: %+v", id, e)
		}
	}
	others := committed(t, k, topic+".alone", 0)
	for i, r := range others {
		if i < len(all) && (string(r.Value) != string(all[i].Value) || string(r.Key) != string(all[i].Key) || !slices.EqualFunc(r.Headers, all[i].Headers, func(a, b kgo.RecordHeader) bool {
			return a.Key == b.Key && string(a.Value) == string(b.Value)
		})) {
			t.Fatalf("record %d of the sink of executions alone is %s, want %s", i, r.Value, all[i].Value)
		}
	}
	if len(others) != len(all) {
		t.Errorf("%d executions of the sink of executions alone, want %d", len(others), len(all))
	}
	if fills == 0 {
		t.Error("nothing was traded: the test shows nothing")
	}
	t.Logf("%d primaries killed; %d orders acknowledged, %d executions in Kafka, %d of them fills", kills, len(acked), len(all), fills)
}
