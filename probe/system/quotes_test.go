package system

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/published"
)

// What a real gateway takes comes to those who want it, each once, and what it refuses is an error with its reason.
func TestQuotes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a grid: run it without -short")
	}
	o := &Options{GridNode: testgrid.Program(t, "grid-node"), Gateway: testgrid.Program(t, "order-gateway"), Say: t.Logf}
	g, err := o.grid(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	gate, err := o.gateway(t.Context(), g, "--websocket", "127.0.0.1:0", "--websocket-console=false", "--websocket-publish-messages", "60")
	if err != nil {
		t.Fatal(err, g.Stop())
	}
	s := &streams{Options: o, p: published.Fanout{Measured: 2, MeasureS: 1}, grid: g, gate: gate}
	defer s.end() //nolint:errcheck // the grid is thrown away
	f := flood{preset: published.Preset{Topics: 4, Pub: 40, RateEach: 20, Subs: 2, Payload: 2048}, clients: 3}
	x, err := s.flood(t.Context(), f, false)
	if err != nil {
		t.Fatal(err)
	}
	if x.tally != (tally{expected: 60, received: 60}) || x.payload != 2048 || len(x.latencies) == 0 || len(x.lists) != 2 {
		t.Errorf("%+v, payload %v, %d latencies, %d lists", x.tally, x.payload, len(x.latencies), len(x.lists))
	}
	if x, err = s.flood(t.Context(), f, true); err != nil || x.missing != 1 || x.repeated != 1 || x.others != 0 {
		t.Errorf("with a client that loses one and one that takes one twice: %+v, %v", x, err)
	}
	f.preset.Pub, f.preset.RateEach = 400, 200
	if _, err := s.flood(t.Context(), f, false); err == nil || !strings.Contains(err.Error(), `messages of \"publisher\" in a second`) {
		t.Errorf("more than the gateway takes: %v", err)
	}
	f.preset.Payload = minPayload - 1
	if _, err := s.flood(t.Context(), f, false); err == nil || !strings.Contains(err.Error(), "payload of messages is 23 bytes, allowed: 24 or more") {
		t.Errorf("payloads without room for what is checked: %v", err)
	}
}
