package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/chromium"
)

// The list of a client that may read everything is of orders, and of nothing else that it may read: executions and what
// clients publish. It goes on after a gateway that dies.
func TestConsoleOfAll(t *testing.T) {
	g := testgrid.Matching(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	buy := func(id string) {
		t.Helper()
		if _, err := c.Submit(ctx, fixMessage(fmt.Sprintf("35=D|11=%s|1=A17|55=IBM|54=1|38=10|40=2|44=125.25", id))); err != nil {
			t.Fatal(err)
		}
	}
	file := clientsOf(t, map[string]string{"all": `"topics": [">", "*.A17.>"]`, "desk": `"publish": ["user.>"]`})
	gateway := startGateway(t, g, "127.0.0.1:0", "--websocket-clients", file)
	p := openConsole(t, gateway.addr)
	p.look("", chromium.Look{Width: 1280, Height: 800}) // with all columns
	p.do(fmt.Sprintf(`document.getElementById("token").value = %q; document.getElementById("login").requestSubmit()`, tokenOf+"all"))
	p.eventually(`document.getElementById("state").dataset.state === "open"`)
	buy("ONE")
	desk := speak(t, gateway, deskToken)
	for id, data := range []string{`null`, `"text"`, `{"symbol": "IBM"}`} {
		desk.say(fmt.Sprintf(`{"op":"publish","id":%d,"topic":"user.A17.a.b","data":%s}`, id+1, data))
		if m := desk.hear(); m.Op != "published" {
			t.Fatalf("%+v", m)
		}
	}
	buy("TWO")
	rows := func(want string) {
		t.Helper()
		p.eventually(fmt.Sprintf(`[...document.querySelectorAll("#rows .row:not([hidden])")].map(r => r.children[7]?.textContent || r.textContent).join() === %q`, want))
	}
	rows("TWO,ONE")
	for _, m := range p.Messages() {
		t.Errorf("message of the browser: %s", m)
	}
	gateway.kill()
	p.eventually(`document.getElementById("state").dataset.state === "lost"`)
	buy("THREE")
	startGateway(t, g, gateway.addr, "--websocket-clients", file)
	rows("THREE,TWO,ONE")
}
