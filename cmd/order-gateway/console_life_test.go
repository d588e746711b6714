package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/chromium"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// lived is a grid with a file sink and one outside, a gateway, and who may what there.
type lived struct {
	t       *testing.T
	grid    *testgrid.Grid
	c       *client.Client
	gateway *process
	files   string // of the clients
}

func live(t *testing.T) *lived {
	t.Helper()
	l := &lived{t: t, grid: testgrid.Start(t, testgrid.Options{MemoryMiB: 256, Args: []string{"--sink", "file", "--dir", t.TempDir(), "--external-sink", "far"}})}
	var err error
	if l.c, err = client.Dial(t.Context(), client.Config{Endpoints: l.grid.Endpoints, RequestTimeout: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.c.Close() })
	l.files = clientsOf(t, map[string]string{
		"ops":      `"topics": ["orders.>", "downstream.>", "user.drills.>", "grid.status"]`,
		"desk":     `"topics": ["orders.>"]`,
		"recorder": `"publish": ["user.drills.>"]`,
	})
	l.gateway = startGateway(t, l.grid, "127.0.0.1:0", "--websocket-clients", l.files)
	return l
}

func (l *lived) login(token string) page {
	l.t.Helper()
	p := openConsole(l.t, l.gateway.addr)
	p.look("", chromium.Look{Width: 1280, Height: 800})
	p.do(fmt.Sprintf(`document.getElementById("token").value = %q; document.getElementById("login").requestSubmit()`, tokenOf+token))
	p.eventually(`document.getElementById("state").dataset.state === "open"`)
	return p
}

// says waits until an element has a text, whatever its line breaks.
func (p page) says(id, text string) {
	p.t.Helper()
	p.eventually(fmt.Sprintf(`document.getElementById(%q).innerText.replace(/\s+/g, " ").includes(%q)`, id, text))
}

// The life of an order goes on until each sink holds it, as the sinks say so; a sink that does not hold it is named.
func TestConsoleDownstream(t *testing.T) {
	l := live(t)
	p := l.login("ops")
	receipt, err := l.c.Submit(t.Context(), testgrid.Order("ONE", 305))
	if err != nil {
		t.Fatal(err)
	}
	p.eventually(`document.getElementById("scroll").getAttribute("aria-rowcount") === "1"`)
	for _, k := range []string{"j", "Enter"} {
		p.key(k)
	}
	at := fmt.Sprintf("%s/%d", receipt.Partition, receipt.Seq)
	p.says("life", "replicated and committed as "+at)
	p.says("life", "downstream: the nodes' sink holds "+at)
	p.says("life", "not downstream yet: far holds entries up to 0")

	f, err := l.c.Follow(t.Context(), client.FollowOptions{Partition: receipt.Partition, Name: "far"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it never fails
	for f.After().Seq < receipt.Seq {
		if _, err := f.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Advance(f.After().Seq, f.After().Hash); err != nil {
		t.Fatal(err)
	}
	p.says("life", "downstream: far holds "+at)
	p.eventually(`!document.getElementById("life").innerText.includes("not downstream yet")`)
	p.says("shards", fmt.Sprintf("far holds up to %d", f.After().Seq))
	p.look("life", chromium.Look{Width: 1280, Height: 800})
	p.look("", chromium.Look{Width: 400, Height: 800, Dark: true})
	for _, m := range p.Messages() {
		t.Errorf("message of the browser: %s", m)
	}

	// What was there before a page was opened is read from the log; who may not read it is told nothing of it.
	again := l.login("ops")
	again.eventually(`document.getElementById("scroll").getAttribute("aria-rowcount") === "1"`)
	for _, k := range []string{"j", "Enter"} {
		again.key(k)
	}
	again.says("life", "downstream: far holds "+at)
	desk := speak(t, l.gateway, tokenOf+"desk")
	for _, topic := range []string{"downstream.>", "user.drills.>"} {
		desk.say(fmt.Sprintf(`{"op":"subscribe","id":1,"topics":%q}`, topic))
		if m := desk.hear(); m.Op != "error" || m.Code != "not-permitted" {
			t.Errorf("%s: %+v", topic, m)
		}
	}
}

// A drill is seen while it happens: its step, what was done, when service and redundancy were back, and its verdict.
func TestConsoleDrill(t *testing.T) {
	l := live(t)
	waitForCopies(t, l.c)
	cfg := recorder.Config{Endpoints: l.grid.Endpoints, Replicas: 2, Probes: 2, Rate: 100, Sessions: 2, Reads: 20, Orders: 5, FIX: fixorder.FIX42, Timeout: 10 * time.Second, Seed: 7,
		Patience: 20 * time.Second, GapLimit: 5 * time.Second, MaxOrders: 1 << 20, Token: "secret", Dir: t.TempDir(), Say: t.Logf,
		Announce: &recorder.Announce{URL: "ws://" + l.gateway.addr, Drill: "kill-one", Token: client.TokenFile(filepath.Join(filepath.Dir(l.files), "recorder"))}}
	for _, u := range l.grid.HTTP {
		cfg.NodeHTTP = append(cfg.NodeHTTP, strings.TrimPrefix(u, "http://"))
	}
	r, err := recorder.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	p := l.login("ops")
	p.says("drills", "kill-one Running")
	until(t, func() bool { s := r.State(); return s.Phase == api.Running && s.Calm > time.Second })

	pod, _, _ := strings.Cut(l.c.Table()[0].Primary.ID, "/")
	if _, err := r.Begin(0, api.Step{Repetition: 1, Fault: "kill", Type: "PodKill", Provider: "test", What: "PodKill " + pod, Pods: []string{pod}}); err != nil {
		t.Fatal(err)
	}
	p.says("drills-list", "PodKill "+pod)
	p.eventually(`document.querySelector("#drills-list li.now")`)
	pid, err := l.grid.PIDOf(l.c.Table()[0].Primary.Address)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := api.Note{Witness: api.Witness{State: api.Seen, Message: "the process is gone"}}
	for _, e := range []api.Event{api.Injected, api.Recovered} {
		if _, err := r.Tell(0, e, seen); err != nil {
			t.Fatal(err)
		}
	}
	p.says("drills-list", "in place")
	p.says("events", "epoch")
	p.says("drills-list", "witness Seen")
	p.says("drills-list", "outage")
	p.eventually(`!document.querySelector("#drills-list li.now")`)
	p.look("drill", chromium.Look{Width: 1280, Height: 800, Dark: true})
	p.look("", chromium.Look{Width: 1280, Height: 800})
	p.key("g")
	p.eventually(`document.activeElement.id === "grid"`)
	p.look("", chromium.Look{Width: 400, Height: 800})
	p.look("phone-drill", chromium.Look{Width: 400, Height: 800, Dark: true})

	// A gateway that dies is none of the drill's business; another one shows it again.
	l.gateway.kill()
	p.eventually(`document.getElementById("state").dataset.state === "lost"`)
	startGateway(t, l.grid, l.gateway.addr, "--websocket-clients", l.files)
	p.eventually(`document.getElementById("state").dataset.state === "open"`)
	p.says("drills", "kill-one Running")
	if err := r.Finish(api.Finish{}); err != nil {
		t.Fatal(err)
	}
	p.says("drills", "kill-one Done: ")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Messages() {
		if !strings.Contains(m, "WebSocket") { // of the gateway that died
			t.Errorf("message of the browser: %s", m)
		}
	}
}
