package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/subscriber"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/proc"
)

const testToken = "0123456789abcdef-all"

// process is a running order-gateway.
type process struct {
	cmd  *exec.Cmd
	addr string
	http string
	said proc.Tail
}

var servedAt = regexp.MustCompile(`metrics and status are served" address=(\S+)`)

var acceptedAt = regexp.MustCompile(`WebSocket clients are accepted" address=(\S+)`)

// startGateway starts the program before a grid; it ends with the test. listen is an address.
func startGateway(t *testing.T, g *testgrid.Grid, listen string, more ...string) *process {
	t.Helper()
	args := append([]string{"--endpoint", strings.Join(g.Endpoints, ","), "--websocket", listen}, more...)
	if !strings.Contains(strings.Join(more, " "), "--websocket-clients") {
		args = append(args, "--websocket-clients", clientsFile(t))
	}
	if !strings.Contains(strings.Join(more, " "), "--websocket-tls-cert") {
		args = append(args, "--websocket-insecure-plain")
	}
	return startProcess(t, acceptedAt, args...)
}

// startProcess starts the program, and waits until it has logged the address that at finds.
func startProcess(t *testing.T, at *regexp.Regexp, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(testgrid.Program(t, "order-gateway"), append([]string{"--http", "127.0.0.1:0"}, args...)...)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	addr := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&p.said, lines.Text())
			if m := servedAt.FindStringSubmatch(lines.Text()); m != nil {
				p.http = m[1]
			}
			if m := at.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case addr <- m[1]:
				default:
				}
			}
		}
		close(addr)
	}()
	select {
	case p.addr = <-addr:
	case <-time.After(time.Minute):
	}
	if p.addr == "" {
		t.Fatalf("order-gateway accepts no clients:\n%s", p.said.String())
	}
	return p
}

// client is how the client of clientsFile connects.
func (p *process) client() subscriber.Gateway {
	return subscriber.Gateway{Address: p.addr, Token: testToken}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func clientsFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "clients.json")
	text := fmt.Sprintf(`{"clients": [{"name": "all", "tokenFile": %q, "topics": ["orders.>", "grid.status"]}]}`, token)
	for name, text := range map[string]string{token: testToken + "\n", file: text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// subscriberAt is a client of all orders that goes from one gateway to the next when its connection ends.
func subscriberAt(name string, gateways ...*atomic.Pointer[process]) *subscriber.Subscriber {
	return &subscriber.Subscriber{Name: name, Topics: "orders.>",
		Gateway: func(n int) subscriber.Gateway { return gateways[n%len(gateways)].Load().client() }}
}

func metricsOf(t *testing.T, p *process) string {
	t.Helper()
	r, err := http.Get("http://" + p.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it is read
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func submit(t *testing.T, c *client.Client, prefix string, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Submit(t.Context(), testgrid.Order(fmt.Sprintf("%s-%d", prefix, i), 305)); err != nil {
			t.Fatal(err)
		}
	}
}

// orders are the entries with orders in the log of each partition, and the last of each.
func orders(t *testing.T, c *client.Client) (logged map[int][]uint64, ends map[int]uint64) {
	t.Helper()
	logged, ends = map[int][]uint64{}, map[int]uint64{}
	for _, p := range c.Table() {
		_, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind == order.KindOrder {
				logged[int(p.ID)] = append(logged[int(p.ID)], e.Seq)
				ends[int(p.ID)] = e.Seq
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return logged, ends
}

func killPrimary(t *testing.T, c *client.Client, g *testgrid.Grid) {
	t.Helper()
	pid, err := g.PIDOf(c.Table()[0].Primary.Address)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := c.Table()[0].Epoch
	until(t, func() bool { return c.Refresh(t.Context()) == nil && c.Table()[0].Epoch > before })
}

// killNode kills a node that is not the primary of the first partition, and waits until the grid is without it.
func killNode(t *testing.T, c *client.Client, g *testgrid.Grid) {
	t.Helper()
	p := c.Table()[0]
	at := slices.IndexFunc(p.Members, func(m client.Member) bool { return m.ID != p.Primary.ID })
	if at < 0 {
		t.Fatalf("no member of %+v is not its primary", p)
	}
	pid, err := g.PIDOf(p.Members[at].Address)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		return c.Refresh(t.Context()) == nil && !slices.Contains(c.Table()[0].Members, p.Members[at])
	})
}

func waitForCopies(t *testing.T, c *client.Client) {
	t.Helper()
	until(t, func() bool {
		if c.Refresh(t.Context()) != nil {
			return false
		}
		for _, p := range c.Table() {
			if p.Primary.ID == "" || len(p.Members) < 2 || !p.Members[1].InSync {
				return false
			}
		}
		return true
	})
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come true within a minute")
		}
	}
}
