package listener

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// TestExecutionMessages: both sides of a trade are messages of their own accounts, behind the order of the entry, and
// neither has anything of the other.
func TestExecutionMessages(t *testing.T) {
	side := func(n uint32, side uint8, account, id string, order, other uint64, passive bool) client.Executed {
		return client.Executed{Execution: client.Execution{Partition: 2, Entry: 7, N: n, Kind: client.ExecFilled, Side: side, Order: order, Other: other, Owner: 5, Price: 12525, Qty: 40, Leaves: 60, Cum: 40, Passive: passive},
			Received: time.Unix(1_700_000_000, 123), PriceDigits: 2, Symbol: "ACME", Account: account, ClOrdID: id}
	}
	list := []client.Executed{
		{Execution: client.Execution{Partition: 2, Entry: 6, N: 1, Kind: client.ExecCancelled, Side: 2, Order: 3, Leaves: 5, Reason: 1}, Symbol: "ACME", Unknown: true},
		side(2, 1, "A17", "MINE", 7, 990, false), side(3, 2, "SECRET", "THEIRS", 990, 7, true),
	}
	e := entry(t, 7, order44(map[string]string{})...)
	var b batch
	b.fill(&client.FollowBatch{Entries: []client.LogEntry{e}, Executions: list, Through: client.Position{Seq: 9}}, 2)
	var got []string
	for _, m := range b.messages {
		got = append(got, m.At.String()+" "+string(m.Topic))
	}
	want := "[6.1 executions.%.ACME.sell 7 orders.A17.ACME.buy 7.2 executions.A17.ACME.buy 7.3 executions.SECRET.ACME.sell]"
	if fmt.Sprint(got) != want {
		t.Fatalf("messages are %s, want %s", got, want)
	}
	mine := b.messages[2].Payload
	for _, of := range []string{"SECRET", "THEIRS", "990", `"5"`} {
		if bytes.Contains(mine, []byte(of)) {
			t.Errorf("one side has %q of the other: %s", of, mine)
		}
	}
	var v map[string]any
	if err := json.Unmarshal(mine, &v); err != nil {
		t.Fatal(err)
	}
	for k, w := range map[string]any{"id": "p2/7.2", "received": "2023-11-14T22:13:20.000000123Z", "kind": "filled", "account": "A17", "symbol": "ACME", "side": "buy", "clOrdID": "MINE", "order": "p2/7", "price": "125.25", "qty": "40", "leaves": "60", "cum": "40"} {
		if v[k] != w {
			t.Errorf("%s is %v, want %v", k, v[k], w)
		}
		delete(v, k)
	}
	if len(v) != 0 {
		t.Errorf("it also has %v", v)
	}
	if err := json.Unmarshal(b.messages[0].Payload, &v); err != nil || v["orderFreed"] != true || v["reason"] != "requested" || v["account"] != nil {
		t.Errorf("an order whose entry is freed: %s, %v", b.messages[0].Payload, err)
	}
}
