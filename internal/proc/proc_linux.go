package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a child that runs until Stop.
type Process struct {
	Name string

	cmd    *exec.Cmd
	exited chan struct{}
	said   *Tail
	lines  chan string
}

// Limits of waiting for a child.
const (
	readyLimit = 2 * time.Minute
	stopLimit  = 30 * time.Second // longer than a grid node's --drain-timeout
)

// forks runs every fork on one thread that lives as long as this process: the
// kernel sends the parent-death signal when the *thread* that forked ends.
var forks = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// StartCommand starts cmd in a process group of its own (Ctrl-C reaches only the
// benchmark, which stops its children in order) that the kernel kills when the
// benchmark ends in any way.
func StartCommand(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error, 1)
	forks() <- func() { done <- cmd.Start() }
	return <-done
}

// Start runs cmd. Lines of its standard output are read with Line; the end of
// its standard error is kept for errors.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, exited: make(chan struct{}), said: &Tail{}, lines: make(chan string, 16)}
	cmd.Stderr = p.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := StartCommand(cmd); err != nil {
		return nil, fmt.Errorf("start %s (%s): %w", name, cmd.Path, err)
	}
	go p.read(out)
	return p, nil
}

// read hands lines out and keeps the pipe from filling up when no reader asks.
func (p *Process) read(out io.Reader) {
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		select {
		case p.lines <- sc.Text():
		default:
		}
	}
	close(p.lines)
	_ = p.cmd.Wait() // its standard error shows how it ended
	close(p.exited)
}

// PID of the child.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Said is the end of what the child wrote to its standard error.
func (p *Process) Said() string {
	if s := strings.TrimSpace(p.said.String()); s != "" {
		return s
	}
	return "(nothing on its standard error)"
}

// Ended is closed when the child has ended.
func (p *Process) Ended() <-chan struct{} { return p.exited }

// Line waits for the next line of the child's standard output that begins with
// prefix and returns what follows it.
func (p *Process) Line(ctx context.Context, prefix string) (string, error) {
	late := time.After(readyLimit)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				select { // what it wrote to standard error is complete when it has exited
				case <-p.exited:
				case <-late:
				}
				return "", fmt.Errorf("%s ended before it said %q: %s", p.Name, prefix, p.Said())
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimSpace(rest), nil
			}
		case <-late:
			return "", fmt.Errorf("%s did not say %q within %v: %s", p.Name, prefix, readyLimit, p.Said())
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// Stop ends the child: SIGTERM, patience, SIGKILL. It returns when it is gone.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopLimit):
	}
	p.Kill()
	return fmt.Errorf("%s (pid %d) did not stop within %v of SIGTERM and was killed", p.Name, p.PID(), stopLimit)
}

// Kill ends the child at once: for processes that have nothing to put in order.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// Group stops what was started, the last first.
type Group struct{ stops []func() error }

// Add registers f to run at Stop.
func (g *Group) Add(f func() error) { g.stops = append(g.stops, f) }

// Stop runs all, whatever the others answered, once.
func (g *Group) Stop() error {
	var errs []error
	for i := len(g.stops) - 1; i >= 0; i-- {
		errs = append(errs, g.stops[i]())
	}
	g.stops = nil
	return errors.Join(errs...)
}
