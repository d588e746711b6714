package service_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/service"
)

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// A node that stands still, and so keeps its connections, is asked whether it is there. Orders of
// that time are reported once when it is back.
func TestSilentNode(t *testing.T) {
	g := testgrid.Start(t, testgrid.Options{Replicas: 1})
	log := &lines{}
	d := serve(t, g, func(c *service.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }, "A")
	p, got := d.logon("A", "right")
	if !strings.Contains(got, "|35=A|") {
		t.Fatal(got)
	}
	p.order("before")
	p.want("|11=before|")
	nodes, err := g.Nodes()
	if err != nil || len(nodes) != 1 {
		t.Fatal(nodes, err)
	}
	if err := syscall.Kill(nodes[0].PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(nodes[0].PID, syscall.SIGCONT) //nolint:errcheck // it runs already
	for i := range 10 {
		p.order(fmt.Sprintf("meanwhile%d", i))
	}
	for n := 0; !log.has("not even an answer to a Ping"); n++ {
		if n == 3000 {
			t.Fatal("nothing is said of the silent node")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := syscall.Kill(nodes[0].PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		p.want(fmt.Sprintf("|11=meanwhile%d|", i))
	}
	p.order("after")
	p.want("|11=after|")
}
