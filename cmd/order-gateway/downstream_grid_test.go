package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// positions reads positions of sinks until the nodes' sink holds an order, and checks that those of a partition rise.
func (k *talker) positions(of *client.Receipt, last map[int]uint64) {
	k.t.Helper()
	for {
		m := k.hear()
		if m.Op == "gap" || m.Op == "error" {
			k.t.Fatalf("%+v", m)
		}
		if m.Op != "message" {
			continue
		}
		at, err := strconv.ParseUint(m.At, 10, 64)
		if err != nil || at <= last[m.Partition] {
			k.t.Fatalf("%s at %s of p%d is behind %d: %v", m.Topic, m.At, m.Partition, last[m.Partition], err)
		}
		last[m.Partition] = at
		var d struct{ Sink, Through string }
		if err := json.Unmarshal(m.Data, &d); err != nil {
			k.t.Fatal(err)
		}
		through, err := strconv.ParseUint(d.Through, 10, 64)
		if err != nil || through >= at {
			k.t.Fatalf("%s at %s: %s: %v", m.Topic, m.At, m.Data, err)
		}
		if d.Sink == "" && m.Partition == int(of.Partition) && through >= of.Seq {
			return
		}
	}
}

// Positions of sinks are at the same place of the log for all gateways: who comes back after the death of a gateway and a
// primary, to one that follows what is wanted alone, gets what it lacks, each once.
func TestGridDownstreamOverDeaths(t *testing.T) {
	l := live(t)
	waitForCopies(t, l.c)
	wanted := startGateway(t, l.grid, "127.0.0.1:0", "--websocket-clients", l.files, "--websocket-follow", "wanted")
	order := func(id string) *client.Receipt {
		t.Helper()
		r, err := l.c.Submit(t.Context(), testgrid.Order(id, 305))
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	last := map[int]uint64{}
	reader := speak(t, l.gateway, tokenOf+"ops")
	reader.say(`{"op":"subscribe","id":1,"topics":"downstream.>"}`)
	reader.positions(order("ONE"), last)
	reader.say(`{"op":"position","id":1}`)
	position := ""
	for m := reader.hear(); ; m = reader.hear() {
		if m.Op == "position" {
			position = m.Position
			break
		}
		last[m.Partition], _ = strconv.ParseUint(m.At, 10, 64)
	}
	l.gateway.kill()
	meanwhile := order("TWO")
	killPrimary(t, l.c, l.grid)
	back := speak(t, wanted, tokenOf+"ops")
	for {
		back.say(fmt.Sprintf(`{"op":"subscribe","id":1,"topics":"downstream.>","resume":%q}`, position))
		if m := back.hear(); m.Op == "subscribed" {
			break
		} else if m.Code != "ahead" {
			t.Fatalf("%+v", m)
		}
	}
	back.positions(meanwhile, last)
	back.positions(order("THREE"), last)
}
