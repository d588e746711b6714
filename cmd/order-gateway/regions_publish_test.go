package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// TestGridPublishReplicated: what is published to a region is there when it is answered, and streamed at the position that
// the answer names; who may not, and what cannot be, is refused with the reason.
func TestGridPublishReplicated(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g := withRegions(t)
	positions := clientOf(t, g).Region("positions")
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-regions", "positions", "--websocket-publish-regions", "positions,later", "--websocket-clients",
		regionPublisher(t, "region.*.>", "region.positions.>"))
	k := talkTo(t, ctx, at)
	for command, want := range map[string][]string{
		`"topic":"region.secret.a","data":1`:                                        {`"code":"invalid"`, "--websocket-publish-regions"},
		`"topic":"region.later.a","data":1`:                                         {`"code":"not-stored"`, "RegionUnknown"},
		`"topic":"region.positions.%","data":1`:                                     {`"code":"invalid"`, "a key of one token"},
		`"topic":"region.positions.a.b","data":1`:                                   {`"code":"invalid"`, "a key of one token"},
		`"topic":"region.positions.a","data":"` + strings.Repeat("x", 65_500) + `"`: {`"code":"limit"`, "65440"},
		`"topic":"user.a","data":1`:                                                 {`"code":"not-permitted"`},
	} {
		k.says(`{"op":"publish","id":9,"replicated":true,`+command+`}`, append(want, `"op":"error"`)...)
	}
	k.says(`{"op":"publish","id":9,"topic":"region.positions.a","data":1}`, `"code":"invalid"`, "allowed: replicated")
	for i, c := range []struct{ topic, key, value, data string }{
		{"region.positions.ACC-1%2EIBM", "ACC-1.IBM", `{"qty": 7}`, `"data":{"qty": 7}`},
		{"region.positions.%FF", "\xff", "\x00\x01", `"base64":"AAE="`},
	} {
		answer := k.says(fmt.Sprintf(`{"op":"publish","id":%d,"replicated":true,"topic":%q,%s}`, i+1, c.topic, c.data), `"op":"published"`)
		r := client.Receipt{}
		if _, err := fmt.Sscanf(answer, `{"op":"published","id":`+fmt.Sprint(i+1)+`,"partition":%d,"at":"%d"}`, &r.Partition, &r.Seq); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		e, err := positions.Get(ctx, []byte(c.key))
		if err != nil || string(e.Value) != c.value || e.Version != r.Seq || e.Partition != r.Partition {
			t.Errorf("%q of version %d (%v), want %q of %d", e.Value, e.Version, err, c.value, r.Seq)
		}
		k.says(fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":%q,"last":1}`, 20+i, c.topic), `"op":"subscribed"`)
		// The gateway may read the entry a moment after it has put it: then it is live first.
		both := k.says("") + k.says("")
		for _, want := range []string{fmt.Sprintf(`"partition":%d,"at":"%d","topic":%q`, r.Partition, r.Seq, c.topic), `"op":"live"`} {
			if !strings.Contains(both, want) {
				t.Errorf("behind the subscription come %s, want %s", both, want)
			}
		}
	}
	k = talkTo(t, ctx, startGateway(t, g, "127.0.0.1:0", "--websocket-clients", regionPublisher(t, "region.positions.>", "region.positions.>")))
	k.says(`{"op":"publish","id":1,"replicated":true,"topic":"region.positions.a","data":1}`, `"code":"invalid"`, "this gateway puts nothing into regions")
	matching := startGateway(t, testgrid.Matching(t), "127.0.0.1:0", "--websocket-publish-regions", "*", "--websocket-clients", regionPublisher(t, "region.positions.>", "region.positions.>"))
	talkTo(t, ctx, matching).says(`{"op":"publish","id":1,"replicated":true,"topic":"region.positions.a","data":1}`, `"code":"invalid"`, "a grid that matches has no regions")
}

// A client publishes one value after the other to some keys, without waiting for answers, and a primary is killed. Each that is
// said to be stored is in the log once, in the order of its key, and nothing else is.
func TestGridPublishReplicatedOverDeaths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g := withRegions(t)
	c := clientOf(t, g)
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-regions", "positions", "--websocket-publish-regions", "positions", "--websocket-clients",
		regionPublisher(t, "region.positions.>", "region.positions.>"))
	k := talkTo(t, ctx, at)
	k.says(`{"op":"subscribe","id":7,"topics":"region.positions.>"}`, `"op":"subscribed"`)
	const messages, keys = 3000, 5
	answers := make(chan map[string]any, 4096)
	var seen [keys][]int // what is streamed
	go func() {
		defer close(answers)
		for n := 0; n < 2*messages && ctx.Err() == nil; {
			_, b, err := k.c.Read(ctx)
			var m struct {
				Op, Code, At string
				ID           int
				Partition    int
				Data         struct {
					Key   string
					Value int
				}
			}
			if err != nil || json.Unmarshal(b, &m) != nil {
				answers <- map[string]any{"fault": fmt.Errorf("%s: %w", b, errors.Join(err, errors.New("not read")))}
				return
			}
			if m.Op == "message" {
				var key int
				_, _ = fmt.Sscanf(m.Data.Key, "k%d", &key)
				seen[key] = append(seen[key], m.Data.Value)
				n++
				continue
			}
			n++
			answers <- map[string]any{"op": m.Op, "id": m.ID, "code": m.Code, "text": string(b)}
			if m.Op == "error" {
				n++ // it is not streamed
			}
		}
	}()
	stored, pending, killed := map[int]bool{}, 0, false
	take := func() {
		a := <-answers
		if a == nil || a["fault"] != nil {
			t.Fatal(a)
		}
		pending--
		switch {
		case a["op"] == "published":
			stored[a["id"].(int)] = true
		case a["code"] != "not-stored": // which is for load
			t.Fatalf("%s", a["text"])
		}
	}
	for id := 1; id <= messages; id++ {
		if err := k.c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"op":"publish","id":%d,"replicated":true,"topic":"region.positions.k%d","data":%d}`, id, id%keys, id)); err != nil {
			t.Fatal(err)
		}
		if pending++; pending == 60 { // of 64 that one client may have
			take()
		}
		if id%5 == 0 {
			time.Sleep(6 * time.Millisecond) // 1,000 in a second are allowed
		}
		if id == messages/2 && !killed {
			killed = true
			killPrimary(t, c, g)
		}
	}
	for pending > 0 {
		take()
	}
	for range answers { // until all of them are streamed
	}
	logged := 0
	for key := range keys {
		got := seen[key]
		logged += len(got)
		for i := range got {
			if got[i]%keys != key || !stored[got[i]] || i > 0 && got[i] <= got[i-1] {
				t.Fatalf("key %d has %v", key, got[max(0, i-3):i+1])
			}
		}
	}
	changed, _ := changesOf(t, c, "positions", "")
	if n := len(changed[0]) + len(changed[1]); n != len(stored) || logged != len(stored) || len(stored) < messages*9/10 {
		t.Errorf("%d changes are in the log, %d were streamed, %d of %d stored", n, logged, len(stored), messages)
	}
}
