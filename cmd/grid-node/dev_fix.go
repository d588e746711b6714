package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/fix/service"
	"github.com/ordergrid/ordergrid/grid-node/dev"
)

// The FIX sessions of a grid for trying out, one in each version. The password keeps out
// engines that are configured for something else; it protects nothing.
const (
	devSender, devTarget = "BANK", "GRID"
	devUser, devPassword = "bank", "dev"
)

// devFIX serves FIX before the grid of "grid-node dev".
type devFIX struct {
	port int // 0: none
	dir  string
	grid *client.Client
	run  *service.Service
}

func (f *devFIX) check(o *dev.Options) error {
	switch {
	case f.port < 0 || f.port > 65535:
		return fmt.Errorf("--fix: value %d, allowed: 0 (none) or 1..65535", f.port)
	case f.port != 0 && o.TLS:
		return fmt.Errorf("--fix: value %d, with --tls; allowed: without, its port has no TLS. Run order-gateway beside the grid for sessions with TLS", f.port)
	case f.port != 0 && o.Standby:
		return fmt.Errorf("--fix: value %d, with --standby; allowed: without, a standby takes no orders", f.port)
	}
	return nil
}

// open listens before a grid that is ready.
func (f *devFIX) open(ctx context.Context, o *dev.Options, i *dev.Info) (err error) {
	if f.port == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			f.close()
			err = fmt.Errorf("--fix: %w", err)
		}
	}()
	if f.dir, err = os.MkdirTemp("", "ordergrid-dev-fix-"); err != nil {
		return err
	}
	sessions, err := writeSessions(f.dir)
	if err != nil {
		return err
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if f.grid, err = client.Dial(ctx, client.Config{Endpoints: i.Endpoints, Grid: i.Grid, Name: "grid-node dev --fix", IO: client.IONet, Logger: log}); err != nil {
		return err
	}
	f.run, err = service.New(service.Config{Client: f.grid, Listen: []string{net.JoinHostPort(o.Host, strconv.Itoa(f.port))}, Sessions: sessions, Drain: 2 * time.Second, Logger: log})
	if err != nil {
		return err
	}
	i.FIX = f.run.Addrs()[0]
	return nil
}

// serve runs until ctx ends.
func (f *devFIX) serve(ctx context.Context) error {
	if f.run == nil {
		<-ctx.Done()
		return nil
	}
	defer f.close()
	if err := f.run.Run(ctx); err != nil {
		return fmt.Errorf("--fix: %w", err)
	}
	return nil
}

func (f *devFIX) close() {
	if f.grid != nil {
		_ = f.grid.Close() // it never fails
	}
	_ = os.RemoveAll(f.dir) // below the directory for temporary files
}

// writeSessions writes the file of the sessions, and returns its path.
func writeSessions(dir string) (string, error) {
	var file struct {
		Sessions []roster.Entry `json:"sessions"`
	}
	for _, v := range []string{"FIX.4.2", "FIX.4.4", "FIXT.1.1"} {
		file.Sessions = append(file.Sessions, roster.Entry{Version: v, SenderCompID: devSender, TargetCompID: devTarget, Username: devUser, PasswordFile: "password"})
	}
	text, err := json.Marshal(file)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sessions.json")
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte(devPassword+"\n"), 0o600); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o600)
}

// runDev runs a grid and what is before it. FIX sessions are logged out before the grid
// ends.
func runDev(ctx context.Context, o dev.Options, f *devFIX, ready func(dev.Info)) error {
	gridCtx, stopGrid := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopGrid(nil)
	starting := context.AfterFunc(ctx, func() { stopGrid(nil) })
	err := dev.Run(gridCtx, o, func(i dev.Info) {
		starting()
		if err := f.open(ctx, &o, &i); err != nil {
			stopGrid(err)
			return
		}
		ready(i)
		go func() { stopGrid(f.serve(ctx)) }()
	})
	if err != nil {
		return err
	}
	if cause := context.Cause(gridCtx); cause != context.Canceled { //nolint:errorlint // it is that value, or the error of FIX
		return cause
	}
	return nil
}

func printFIX(w io.Writer, address string) {
	if address != "" {
		fmt.Fprintf(w, "  FIX       %s, FIX.4.2, FIX.4.4 and FIXT.1.1 (FIX 5.0 SP2): SenderCompID %s, TargetCompID %s, Username (553) %s, Password (554) %s\n\n", address, devSender, devTarget, devUser, devPassword)
	}
}
