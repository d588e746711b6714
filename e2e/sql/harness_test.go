// Package sql runs real clients and the real PostgreSQL beside order-gateway's listener.
package sql

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// world is a grid with a listener before it.
type world struct {
	grid    *testgrid.Grid
	client  *client.Client
	address string
	orders  int
}

// dsn is an address for libpq and its like.
func (w *world) dsn() string {
	host, port, _ := strings.Cut(w.address, ":")
	return fmt.Sprintf("host=%s port=%s user=desk dbname=grid sslmode=disable", host, port)
}

// start runs a grid of two partitions with orders in it, and the listener.
func start(t *testing.T, orders int, args ...string) *world {
	t.Helper()
	regions := filepath.Join(t.TempDir(), "regions.yaml")
	if err := os.WriteFile(regions, []byte("memory: 64Mi\nregions: [{name: positions}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{grid: testgrid.Run(t, "--views", "512Mi", "--view-rows", "131072", "--order-index", "5001:text:Desk", "--", "--regions", regions), orders: orders}
	var err error
	if w.client, err = client.Dial(t.Context(), client.Config{Endpoints: w.grid.Endpoints}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.client.Close() })
	w.load(t, orders)
	w.address = gateway(t, append([]string{"--endpoint", strings.Join(w.grid.Endpoints, ","), "--postgresql-insecure-plain",
		"--postgresql-column", "5001:text:Desk"}, args...)...)
	return w
}

// gateway starts order-gateway with SQL only, and returns its address.
func gateway(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(testgrid.Program(t, "order-gateway"), append([]string{"--postgresql", "127.0.0.1:0", "--http", ""}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how it ends is not what these tests are about
	})
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if _, rest, ok := strings.Cut(lines.Text(), "SQL is served\" address="); ok {
			address, _, _ := strings.Cut(rest, " ")
			go func() {
				for lines.Scan() { // so that it never waits for its reader
				}
			}()
			return address
		}
	}
	t.Fatalf("order-gateway: %s", strings.Join(said, "\n"))
	return ""
}

var symbols = []string{"IBM", "AAPL", "MSFT", "NESN", "ROG", "UBSG", "a", "Z", "z z", "A_B", "A%"}

// message is a random order, cancel or replace, of the values that questions look for.
func message(r *rand.Rand, n int) (text []byte, id string) {
	id = fmt.Sprintf("C%06d", n)
	kind := "D"
	switch r.IntN(6) {
	case 0:
		kind = "F"
	case 1:
		kind = "G"
	}
	var b strings.Builder
	field := func(tag int, format string, args ...any) {
		fmt.Fprintf(&b, "%d="+format+"\x01", append([]any{tag}, args...)...)
	}
	field(35, "%s", kind)
	field(49, "CLIENT")
	field(56, "GRID")
	field(34, "%d", n+1)
	field(52, "20261121-09:30:00")
	field(11, "%s", id)
	if kind != "D" {
		field(41, "C%06d", r.IntN(n+1))
	}
	if r.IntN(4) > 0 {
		field(1, "ACC%d", r.IntN(5))
	}
	field(21, "1")
	field(55, "%s", symbols[r.IntN(len(symbols))])
	field(54, "%d", 1+r.IntN(2))
	field(60, "20261121-09:%02d:%02d.%03d", r.IntN(60), r.IntN(60), r.IntN(1000))
	field(38, "%s", []string{"100", "1", "250.5", "1000000", "0.00000001", "77.10"}[r.IntN(6)])
	if kind != "F" {
		if r.IntN(3) > 0 {
			field(40, "2")
			field(44, "%s", []string{"125.25", "125.250", "0", "0.1", "-5", "99999999.99999999", "1234567890123.5", "125"}[r.IntN(8)])
		} else {
			field(40, "1")
		}
		if r.IntN(2) > 0 {
			field(59, "%d", r.IntN(2))
		}
	}
	if r.IntN(2) > 0 {
		field(5001, "desk %d", r.IntN(3))
	}
	m := append([]byte("8=FIX.4.2\x019="+strconv.Itoa(b.Len())+"\x01"), b.String()...)
	return fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m)), id
}

func (w *world) load(t *testing.T, orders int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	results := make(chan error, orders)
	for n := range orders {
		m, id := message(r, n)
		done := func(_ client.Receipt, err error) {
			if err != nil {
				err = fmt.Errorf("order %s: %w", id, err)
			}
			results <- err
		}
		for {
			err := w.client.SubmitAsync(m, done)
			if err == nil {
				break
			}
			time.Sleep(time.Millisecond) // the window is full
		}
	}
	for range orders {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
}

// open connects with pgx.
func open(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// number is an environment variable, or what is usual.
func number(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}
