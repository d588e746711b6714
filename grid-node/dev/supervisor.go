package dev

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// supervisor starts the node processes and, after keep, restarts those that end.
type supervisor struct {
	exe    string
	log    *slog.Logger
	stderr *lineWriter
	failed chan error // a node ended before keep; holds the first
	forks  chan func()

	mu       sync.Mutex
	keeping  bool
	stopping bool
	running  map[int]*exec.Cmd
	starts   map[int]int  // processes started, by node
	left     map[int]bool // nodes that are not started again
	wg       sync.WaitGroup
}

func newSupervisor(o Options) *supervisor {
	s := &supervisor{exe: o.Exe, log: o.Log, stderr: &lineWriter{w: o.Stderr}, failed: make(chan error, 1),
		forks: make(chan func()), running: map[int]*exec.Cmd{}, starts: map[int]int{}, left: map[int]bool{}}
	// The kernel delivers a parent-death signal when the thread that forked ends,
	// not the process: all forks are done by one thread that lives as long as we do.
	go func() {
		runtime.LockOSThread()
		for f := range s.forks {
			f()
		}
	}()
	return s
}

const (
	stopPatience   = 25 * time.Second // longer than a node's default --drain-timeout
	minRestartWait = 50 * time.Millisecond
	maxRestartWait = 2 * time.Second
	steadyAfter    = 10 * time.Second // a node that lived this long restarts at once
)

// start runs node i and supervises it.
func (s *supervisor) start(i int, args []string) error {
	cmd, err := s.spawn(i, args)
	if err != nil {
		return err
	}
	s.wg.Go(func() { s.look(i, args, cmd) })
	return nil
}

// state returns node i's pid, 0 if it has none, and how often it was started.
func (s *supervisor) state(i int) (pid, starts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmd := s.running[i]; cmd != nil {
		pid = cmd.Process.Pid
	}
	return pid, s.starts[i]
}

// abandon leaves node i's process running and does not restart it.
func (s *supervisor) abandon(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[i] = true
}

func (s *supervisor) spawn(i int, args []string) (*exec.Cmd, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.left[i] {
		return nil, errors.New("stopping")
	}
	cmd := exec.Command(s.exe, args...)
	cmd.Stdout, cmd.Stderr = s.stderr, s.stderr
	cmd.SysProcAttr = dieWithParent()
	done := make(chan error, 1)
	s.forks <- func() { done <- cmd.Start() }
	if err := <-done; err != nil {
		return nil, fmt.Errorf("start node %d (%s): %w", i, s.exe, err)
	}
	s.running[i] = cmd
	s.starts[i]++
	return cmd, nil
}

// look waits for a node to end, repeatedly.
func (s *supervisor) look(i int, args []string, cmd *exec.Cmd) {
	wait := minRestartWait
	for {
		began := time.Now()
		err := cmd.Wait()
		s.mu.Lock()
		delete(s.running, i)
		stopping, keeping := s.stopping || s.left[i], s.keeping
		s.mu.Unlock()
		switch {
		case stopping:
			return
		case !keeping:
			select {
			case s.failed <- fmt.Errorf("node %d ended while the grid was starting: %s", i, ended(err)):
			default:
			}
			return
		}
		if time.Since(began) > steadyAfter {
			wait = minRestartWait
		}
		s.log.Warn("a node ended, starting it again as a new member", "node", i, "reason", ended(err), "in", wait.String())
		time.Sleep(wait)
		wait = min(2*wait, maxRestartWait)
		if cmd, err = s.spawn(i, args); err != nil {
			if !s.isStopping() {
				s.log.Error("cannot start a node again", "node", i, "reason", err)
			}
			return
		}
		s.log.Info("node started again", "node", i, "pid", cmd.Process.Pid)
	}
}

func ended(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

func (s *supervisor) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// keep starts to restart nodes that end.
func (s *supervisor) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeping = true
}

// stop ends the nodes: SIGINT, since all stop at once and none has a target for a
// hand-over, then a grace period, then SIGKILL.
func (s *supervisor) stop() {
	s.signal(syscall.SIGINT)
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(stopPatience):
		s.log.Warn("a node did not stop in time, killing it")
		s.signal(syscall.SIGKILL)
		<-done
	}
	close(s.forks)
}

func (s *supervisor) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, cmd := range s.running {
		_ = cmd.Process.Signal(sig) // it may have ended just now
		_ = resume(cmd.Process)     // a test may have stopped it; it would not receive the signal
	}
}
