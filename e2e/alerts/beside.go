package alerts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// companion is a program beside a grid, whose page is scraped.
type companion struct {
	http   string
	labels map[string]string // beside namespace and grid
	cmd    *exec.Cmd
}

// beside runs a program of this checkout beside the grid until the case has ended, and has its metrics scraped. The
// address of its pages is appended to args as --http.
func (w *world) beside(ctx context.Context, labels map[string]string, program string, args ...string) error {
	c := &companion{labels: labels}
	var err error
	if c.http, err = w.ports.Take("127.0.0.1", 0); err != nil {
		return err
	}
	said := &proc.Tail{}
	c.cmd = exec.Command(filepath.Join(w.bin, program), append(args, "--http", c.http)...)
	c.cmd.Stdout, c.cmd.Stderr = said, said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	w.companions = append(w.companions, c)
	for end := time.Now().Add(30 * time.Second); ; _ = clock.Wait(ctx, 100*time.Millisecond) {
		conn, err := net.DialTimeout("tcp", c.http, time.Second)
		if err == nil {
			_ = conn.Close()
			return w.point()
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("%s %s serves no pages at %s: %w\n%s", program, strings.Join(args, " "), c.http, err, said.String())
		}
	}
}

// endCompanions ends what runs beside the grid.
func (w *world) endCompanions() error {
	var all []error
	for _, c := range w.companions {
		if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			all = append(all, err)
		}
		_ = c.cmd.Wait() // killed
	}
	w.ports.Release()
	return errors.Join(all...)
}

// archiveInTheWay runs a sink that writes to an archive, where a file stands in the place of a directory.
func archiveInTheWay(ctx context.Context, w *world) error {
	if err := os.WriteFile(filepath.Join(w.dir, "archives"), nil, 0o600); err != nil {
		return err
	}
	return w.beside(ctx, nil, "grid-sink", "archive", "--endpoint", strings.Join(w.grid.Endpoints, ","), "--grid", "dev", "--sink", "orders",
		"--url", filepath.Join(w.dir, "archives", "trades"))
}
