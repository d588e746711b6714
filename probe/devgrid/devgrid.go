// Package devgrid starts a whole grid of real grid-node processes on this
// machine for one run and stops it afterwards (grid-node dev).
package devgrid

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// Options of a grid.
type Options struct {
	// Program is the grid-node program; "" looks next to this program, then in
	// PATH.
	Program          string
	Shards, Replicas int
	// MemoryMiB is the memory limit of each node.
	MemoryMiB int64
	// Args are more arguments of grid-node dev.
	Args []string
	// Log gets everything that the processes write to standard error; may be nil.
	Log io.Writer
}

// Grid is a grid that runs.
type Grid struct {
	Endpoints []string
	Arbiter   string   // base URL of the arbiter and of the grid's controls
	HTTP      []string // base URLs of the nodes' metrics
	PIDs      []int    // of the nodes
	TLS       *TLS     // for clients; nil without --tls

	stop func() error
	kill func()
	log  func() string
}

// TLS are the PEM files of a client.
type TLS struct{ Cert, Key, CA string }

const (
	startLimit = 60 * time.Second
	stopLimit  = 15 * time.Second
)

// Find returns a program: as given, next to this one, or in PATH.
func Find(given, name string) (string, error) {
	if given != "" {
		return exec.LookPath(given)
	}
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), name)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("program %s: not next to order-probe and not in PATH; build it (make build) or name it with --%s: %w", name, name, err)
	}
	return path, nil
}

// attempts to start a grid: on a busy machine a node can miss its lease before the grid is
// complete, and the grid then ends.
const attempts = 3

// Start returns when the grid accepts orders. The grid also ends with this
// process, however that ends.
func Start(ctx context.Context, o Options) (*Grid, error) {
	program, err := Find(o.Program, "grid-node")
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		g, err := start(ctx, program, o)
		if err == nil || n == attempts || !errors.Is(err, errEnded) {
			return g, err
		}
	}
}

func start(ctx context.Context, program string, o Options) (*Grid, error) {
	cmd := exec.Command(program, "dev", "--json", "--port", "0", "--http-port", "0",
		"--shards", strconv.Itoa(o.Shards), "--replicas", strconv.Itoa(o.Replicas), "--memory-limit", fmt.Sprintf("%dMi", o.MemoryMiB))
	cmd.Args = append(cmd.Args, o.Args...)
	var trouble proc.Tail
	cmd.Stderr = &trouble
	if o.Log != nil {
		cmd.Stderr = io.MultiWriter(&trouble, o.Log)
	}
	// Ctrl-C on the terminal must reach the probe only, which then stops the grid in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	exited, release, err := startHeld(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	stop := func() error { defer release(); return stop(cmd, exited) }
	line := make(chan []byte, 1)
	go func() {
		sc := bufio.NewScanner(out)
		sc.Buffer(nil, 1<<20)
		sc.Scan()
		line <- bytes.Clone(sc.Bytes())
		for sc.Scan() { // keep the pipe from filling up
		}
	}()
	select {
	case b := <-line:
		g, err := parse(b)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s dev: %w\n%s", program, err, trouble.String()), stop())
		}
		g.stop, g.log = stop, trouble.String
		g.kill = func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // they are a group of their own; it may have ended
			<-exited
		}
		return g, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), stop())
	case <-time.After(startLimit):
		return nil, errors.Join(fmt.Errorf("%s dev: not ready after %v\n%s", program, startLimit, trouble.String()), stop())
	}
}

// startHeld starts the process from a thread that lives until release: the
// kernel sends Pdeathsig when the parent *thread* ends, and the probe's timing
// threads do end.
func startHeld(cmd *exec.Cmd) (exited chan struct{}, release func(), err error) {
	started, held := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-held
	}()
	release = sync.OnceFunc(func() { close(held) })
	if err := <-started; err != nil {
		release()
		return nil, nil, err
	}
	exited = make(chan struct{})
	go func() {
		_ = cmd.Wait() // its exit status is not used
		close(exited)
	}()
	return exited, release, nil
}

func stop(cmd *exec.Cmd, exited chan struct{}) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-exited: // its status is not used: it was asked to stop
		return nil
	case <-time.After(stopLimit):
	}
	// Its children end with it (Pdeathsig).
	if err := cmd.Process.Kill(); err != nil {
		return fmt.Errorf("grid-node dev (pid %d) did not stop in %v: %w", cmd.Process.Pid, stopLimit, err)
	}
	<-exited
	return fmt.Errorf("grid-node dev did not stop in %v and was killed", stopLimit)
}

// Stop ends all processes of the grid.
func (g *Grid) Stop() error { return g.stop() }

// Kill ends all processes of the grid at once, as a loss of power does.
func (g *Grid) Kill() { g.kill() }

// Log is the end of the processes' standard error.
func (g *Grid) Log() string { return g.log() }

// errEnded: the program ended without output.
var errEnded = errors.New("ended before it was ready")

// parse reads the line that grid-node dev --json prints when ready.
func parse(b []byte) (*Grid, error) {
	var info struct {
		Endpoints []string `json:"endpoints"`
		Arbiter   string   `json:"arbiter"`
		HTTP      []string `json:"http"`
		PIDs      []int    `json:"pids"`
		TLS       *TLS     `json:"tls"`
	}
	if len(b) == 0 {
		return nil, errEnded
	}
	if err := json.Unmarshal(b, &info); err != nil {
		return nil, fmt.Errorf("first line is %.200q, want the JSON of --json: %w", b, err)
	}
	if len(info.Endpoints) == 0 {
		return nil, fmt.Errorf("first line is %.200q: no endpoints", b)
	}
	return &Grid{Endpoints: info.Endpoints, Arbiter: info.Arbiter, HTTP: info.HTTP, PIDs: info.PIDs, TLS: info.TLS}, nil
}
