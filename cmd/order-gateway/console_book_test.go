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

// The ladder of a book in a browser: of the symbol that is typed or of the order that is chosen, as orders come, after a
// gateway that dies, of what is not traded; and what the grid did with an order.
func TestConsoleBook(t *testing.T) {
	g := testgrid.Matching(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	trade := func(id, symbol string, side, qty int, price string) {
		t.Helper()
		if _, err := c.Submit(ctx, fixMessage(fmt.Sprintf("35=D|11=%s|1=A17|55=%s|54=%d|38=%d|40=2|44=%s", id, symbol, side, qty, price))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		trade(fmt.Sprintf("BID-%d", i), "IBM", 1, 10+5*i, fmt.Sprintf("%.2f", 124.95-0.05*float64(i)))
		trade(fmt.Sprintf("ASK-%d", i), "IBM", 2, 12+7*i, fmt.Sprintf("%.2f", 125.05+0.05*float64(i)))
	}
	rights := []string{"--websocket-clients", booksFile(t, "orders.>", "executions.>", "book.>", "grid.status")}
	gateway := startGateway(t, g, "127.0.0.1:0", rights...)
	p := openConsole(t, gateway.addr)
	p.do(fmt.Sprintf(`document.getElementById("token").value = %q; document.getElementById("login").requestSubmit()`, testToken))
	p.eventually(`!document.getElementById("book").hidden`)
	symbol := func(text string) {
		t.Helper()
		p.do(fmt.Sprintf(`document.getElementById("book-symbol").value = %q; document.getElementById("book-form").requestSubmit()`, text))
	}
	ladder := func(want string) {
		t.Helper()
		p.eventually(fmt.Sprintf(`[...document.querySelectorAll("#book-rows tr")].map(r => r.className + " " + [...r.children].map(c => c.textContent).join("|")).join(" ").includes(%q)`, want))
	}
	says := func(want string) {
		t.Helper()
		p.eventually(fmt.Sprintf(`document.getElementById("book-state").textContent.includes(%q)`, want))
	}
	symbol("IBM")
	says("IBM open, after p")
	ladder("sell ||125.10|19|1 sell ||125.05|12|1 buy 1|10|124.95|| buy 1|15|124.90||")
	p.eventually(`document.querySelectorAll("#book-rows tr").length === 20`)
	trade("TAKER", "IBM", 1, 15, "125.10")
	ladder("sell ||125.10|16|1 buy 1|10|124.95||")
	says("last 125.10")
	symbol("NOT.THIS")
	says("NOT.THIS is not traded by this grid")

	p.typed("TAKER")
	p.eventually(`document.getElementById("scroll").getAttribute("aria-rowcount") == "1"`)
	p.key("j")
	p.key("Enter")
	p.key("b")
	says("IBM open")
	p.eventually(`document.getElementById("executions").innerText.includes("filled, 12 at 125.05, 3 left") && document.getElementById("executions").innerText.includes("filled, 3 at 125.10")`)
	p.look("order", chromium.Look{Width: 1280, Height: 900})
	p.do(`document.getElementById("detail-close").click()`)
	p.eventually(`document.getElementById("detail").hidden`)
	p.typed("")
	p.eventually(`[...document.querySelectorAll("#book-rows td:nth-child(3)")].every(c => c.scrollWidth <= c.clientWidth)`)
	p.look("light", chromium.Look{Width: 1280, Height: 900})
	p.look("dark", chromium.Look{Width: 1280, Height: 900, Dark: true})
	p.look("phone-book", chromium.Look{Width: 400, Height: 800})
	for _, m := range p.Messages() {
		t.Errorf("message of the browser: %s", m)
	}

	gateway.kill()
	p.eventually(`document.getElementById("state").dataset.state === "lost"`)
	trade("MEANWHILE", "IBM", 2, 4, "124.95")
	startGateway(t, g, gateway.addr, append([]string{"--websocket-backlog", "0"}, rights...)...)
	ladder("buy 1|6|124.95|| buy 1|15|124.90||")
	says("last 124.95")
}
