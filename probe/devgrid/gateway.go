package devgrid

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// Gateway is an order-gateway before a grid.
type Gateway struct {
	Address string // of its listener
	Pages   string // host:port of its metrics
	PID     int

	cmd     *exec.Cmd
	exited  chan struct{}
	release func()
	said    proc.Tail
	read    sync.WaitGroup
}

// Lines of its log with the address of a listener, and of its pages.
var (
	listens = regexp.MustCompile(`(?:are accepted|SQL is served)" address=(\S+)`)
	paged   = regexp.MustCompile(`metrics and status are served" address=(\S+)`)
)

// gatewayStart is how long a gateway may take to accept clients.
const gatewayStart = time.Minute

// StartGateway starts an order-gateway before the grid.
func (g *Grid) StartGateway(ctx context.Context, program string, args ...string) (*Gateway, error) {
	return StartGateway(ctx, program, g.Endpoints, args...)
}

// StartGateway starts program, an order-gateway, with one listener before the grid at these addresses. It ends with this
// process, however that ends.
func StartGateway(ctx context.Context, program string, endpoints []string, args ...string) (*Gateway, error) {
	w := &Gateway{}
	w.cmd = exec.CommandContext(ctx, program, append([]string{"--endpoint", strings.Join(endpoints, ","), "--http", "127.0.0.1:0"}, args...)...) //nolint:gosec // the caller's program
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w.cmd.Stderr = in
	w.exited, w.release, err = startHeld(w.cmd)
	_ = in.Close() // the process has it, if it was started
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), out.Close())
	}
	w.PID = w.cmd.Process.Pid
	found := make(chan string, 1)
	w.read.Go(func() { w.follow(out, found) })
	select {
	case w.Address = <-found:
	case <-time.After(gatewayStart):
	}
	if w.Address == "" {
		w.Kill()
		return nil, fmt.Errorf("%s accepts no clients: %.1000s", program, w.Log())
	}
	return w, nil
}

// follow keeps the end of what the gateway says, and finds its addresses.
func (w *Gateway) follow(out io.ReadCloser, found chan<- string) {
	defer out.Close() //nolint:errcheck // it was read
	address := ""
	sent := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&w.said, lines.Text())
		if sent {
			continue
		}
		if m := paged.FindStringSubmatch(lines.Text()); m != nil {
			w.Pages = m[1]
		}
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
		if sent = address != "" && w.Pages != ""; sent {
			found <- address
		}
	}
	close(found)
}

// Log is the end of what it has said.
func (w *Gateway) Log() string { return w.said.String() }

// Status is its page of that name.
func (w *Gateway) Status() ([]byte, error) {
	c := http.Client{Timeout: 5 * time.Second}
	answer, err := c.Get("http://" + w.Pages + "/status")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	return io.ReadAll(io.LimitReader(answer.Body, 1<<20))
}

// Kill ends it at once.
func (w *Gateway) Kill() {
	_ = w.cmd.Process.Kill() // it may have ended
	<-w.exited
	w.read.Wait()
	w.release()
}
