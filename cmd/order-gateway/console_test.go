package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/chromium"
)

// page is the console in a Chromium.
type page struct {
	t *testing.T
	*chromium.Page
}

// eventually waits until an expression is true.
func (p page) eventually(expression string) {
	p.t.Helper()
	for range 600 {
		ok := false
		if err := p.Eval("!!("+expression+")", &ok); err != nil {
			p.t.Fatal(err)
		}
		if ok {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	var text string
	_ = p.Eval("document.body.innerText", &text)
	p.t.Fatalf("never true: %s\nthe page:\n%.2000s\nits messages: %s", expression, text, p.Messages())
}

func (p page) do(statement string) {
	p.t.Helper()
	p.eventually("(() => {" + statement + "; return true})()")
}

func (p page) key(name string) {
	p.t.Helper()
	p.do(fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true}))`, name))
}

func (p page) typed(filter string) {
	p.t.Helper()
	p.do(fmt.Sprintf(`const f = document.getElementById("filter"); f.value = %q; f.dispatchEvent(new Event("input"))`, filter))
}

// look sets size and theme, checks that nothing is wider than the screen, and keeps a picture by that name, if there is one
// and pictures are asked for: those of docs/streams.md.
func (p page) look(name string, l chromium.Look) {
	p.t.Helper()
	if err := p.Look(l); err != nil {
		p.t.Fatal(err)
	}
	p.eventually(fmt.Sprintf("document.documentElement.scrollWidth <= %d", l.Width))
	dir := os.Getenv("ORDERGRID_SCREENSHOTS")
	if dir == "" || name == "" {
		return
	}
	shot, err := p.Screenshot()
	if err == nil {
		shot, err = small(shot)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "console-"+name+".png"), shot, 0o644)
	}
	if err != nil {
		p.t.Error(err)
	}
}

// small makes a picture of 256 colours, which takes a third of the bytes: the most frequent ones of all parts of the space of
// colours, then the most frequent ones. The others are edges of letters.
func small(shot []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	counts, b := map[color.Color]int{}, from.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[from.At(x, y)]++
		}
	}
	all, seen := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] }), map[[3]uint32]bool{}
	var palette, rest color.Palette
	for _, c := range all {
		r, g, b, _ := c.RGBA()
		if part := [3]uint32{r >> 13, g >> 13, b >> 13}; !seen[part] {
			seen[part] = true
			palette = append(palette, c)
		} else {
			rest = append(rest, c)
		}
	}
	palette = append(palette, rest...)
	to := image.NewPaletted(b, palette[:min(256, len(palette))])
	draw.Draw(to, b, from, b.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

func openConsole(t *testing.T, addr string) page {
	t.Helper()
	path, err := chromium.Find()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	browser, err := chromium.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := browser.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := browser.Open()
	if err == nil {
		err = p.Go("http://" + addr + "/")
	}
	if err != nil {
		t.Fatal(err)
	}
	return page{t, p}
}

// sell is an order of another account and symbol than that of testgrid. The price has six characters.
func sell(id string, price string) []byte {
	m := testgrid.Order(id, 0)
	for _, r := range [][2]string{{"\x011=ACC\x01", "\x011=A17\x01"}, {"\x0155=IBM\x01", "\x0155=XYZ\x01"}, {"\x0154=1\x01", "\x0154=2\x01"}, {"\x0144=125.25\x01", "\x0144=" + price + "\x01"}} {
		m = bytes.Replace(m, []byte(r[0]), []byte(r[1]), 1)
	}
	if !order.Seal(m) {
		panic("the order cannot be sealed")
	}
	return m
}

// The console in a browser before a real grid: login, rows, filter, keys, details, the map, a gateway that dies, and
// nothing that its policy forbids.
func TestConsole(t *testing.T) {
	g := testgrid.Run(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	submit(t, c, "BUY", 300)
	gateway := startGateway(t, g, "127.0.0.1:0")
	p := openConsole(t, gateway.addr)
	login := func(token string) {
		p.do(fmt.Sprintf(`document.getElementById("token").value = %q; document.getElementById("login").requestSubmit()`, token))
	}
	p.look("", chromium.Look{Width: 1280, Height: 800})
	login("a wrong token")
	p.eventually(`document.getElementById("refusal").textContent.includes("the token is not known")`)
	login(testToken)
	rows := func(n int) {
		t.Helper()
		p.eventually(fmt.Sprintf(`document.getElementById("scroll").getAttribute("aria-rowcount") == "%d"`, n))
	}
	rows(300)
	if _, err := c.Submit(ctx, sell("SELL-1", "099.50")); err != nil {
		t.Fatal(err)
	}
	rows(301)
	p.eventually(`document.querySelectorAll("#rows .row").length < 60 && document.getElementById("token").value === ""`)
	p.eventually(`[...document.querySelectorAll("#rows .row")].some(r => r.textContent.includes("XYZsell100099.50newSELL-1"))`)

	p.typed("xyz sell price<100")
	rows(1)
	p.typed("price>100 account:acc")
	rows(300)
	p.key("Escape")
	p.typed("SELL-1")
	rows(1)
	for _, k := range []string{"j", "Enter"} {
		p.key(k)
	}
	p.eventually(`!document.getElementById("detail").hidden && document.getElementById("life").innerText.includes("received by the primary")`)
	p.eventually(`document.querySelectorAll("#shards .part").length === 2 && document.querySelector("#shards .primary")`)
	p.typed("")
	p.look("", chromium.Look{Width: 1280, Height: 800})
	p.look("", chromium.Look{Width: 1280, Height: 800, Dark: true})
	p.look("phone", chromium.Look{Width: 400, Height: 800, Dark: true})
	p.key("Escape")
	p.eventually(`document.getElementById("detail").hidden`)
	p.look("", chromium.Look{Width: 400, Height: 800})
	p.look("", chromium.Look{Width: 1280, Height: 800})

	for _, m := range p.Messages() {
		t.Errorf("message of the browser: %s", m)
	}
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, "http://"+gateway.addr+"/") {
			t.Errorf("request to %s", r)
		}
	}

	killPrimary(t, c, g)
	p.eventually(`document.getElementById("events").innerText.includes("epoch")`)
	p.look("failover", chromium.Look{Width: 1280, Height: 800, Dark: true})
	gateway.kill()
	p.eventually(`document.getElementById("state").dataset.state === "lost"`)
	submit(t, c, "MEANWHILE", 20)
	startGateway(t, g, gateway.addr, "--websocket-backlog", "0")
	rows(321)
	p.eventually(`document.getElementById("state").dataset.state === "open"`)

	// The columns that are chosen stay in this browser; one always does.
	p.key("c")
	p.do(`document.querySelector("#columns-list input[name=kind]").click()`)
	p.eventually(`document.getElementById("head").innerText.includes("ClOrdID") && !document.getElementById("head").innerText.includes("kind")`)
	p.eventually(`[...document.querySelectorAll("#rows .row:not([hidden])")].every(r => r.childElementCount === 8)`)
	p.look("", chromium.Look{Width: 1280, Height: 800})
	if err := p.Go("http://" + gateway.addr + "/"); err != nil {
		t.Fatal(err)
	}
	p.eventually(`document.getElementById("head").childElementCount === 8`)
	p.do(`import("/columns.js").then(m => {
		const c = new m.Chosen(() => {})
		for (const x of m.columns) c.set(x.name, false)
		document.body.dataset.left = c.shown().columns.length
	})`)
	p.eventually(`document.body.dataset.left === "1"`)
	p.do(`localStorage.setItem("columns", '["nothing", 7]')`)

	// A hundred thousand rows, of a list of the page's own.
	p.do(`import("/blotter.js").then(m => {
		const e = {}
		for (const name of ["list", "scroll", "sizer", "rows", "head", "count"]) e[name] = document.createElement("div")
		const b = new m.Blotter(e, () => {})
		for (let i = 0; i < 100500; i++) b.add({partition: 0, at: String(i), topic: "", data: {symbol: "S" + i % 1000, price: String(i)}})
		b.takeIn()
		b.setFilter("s77 price>50000")
		window.many = [b.all.length, b.shown.length, b.keys.size, e.rows.childElementCount]
	})`)
	p.eventually("window.many")
	var many []int
	if err := p.Eval("window.many", &many); err != nil || many[0] != 100_000 || many[1] != 551 || many[2] != 100_000 || many[3] > 100 {
		t.Errorf("of 100,500 rows %v are kept, shown, known, elements: %v", many, err)
	}
}
