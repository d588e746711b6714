package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Redis is Debian's redis-server, or another of release 7 or later.
type Redis struct {
	Program string // "" looks in PATH
	dir     string
}

// NewRedis looks for redis-server. dir is where its processes may write.
func NewRedis(program, dir string) *Redis {
	if program == "" {
		program, _ = exec.LookPath("redis-server") // Missing tells
	}
	return &Redis{Program: program, dir: dir}
}

// Name implements system.System.
func (r *Redis) Name() string { return "redis" }

// Missing implements system.System.
func (r *Redis) Missing() string {
	if r.Program == "" {
		return "redis-server is not installed (apt-get install redis-server, or name one with --redis)"
	}
	return ""
}

// Floor implements system.System.
func (r *Redis) Floor() bool { return false }

const readyLimit = 20 * time.Second

// Start implements system.System.
func (r *Redis) Start(ctx context.Context, at system.Place, t system.Topology) (*system.Running, error) {
	return system.Started(func(group *proc.Group) (*system.Running, error) { return r.start(ctx, at, t, group) })
}

func (r *Redis) start(ctx context.Context, at system.Place, t system.Topology, group *proc.Group) (*system.Running, error) {
	run := &system.Running{Driver: generator.Redis}
	primary := ""
	for i, role := range []system.Role{system.Primary, system.Backup}[:t.Copies] {
		address, err := system.Address(at, role, 6379)
		if err != nil {
			return nil, err
		}
		p, err := proc.Start("redis-server "+role.String(), at.Command(role, r.Program, args(address, primary, r.dir)...))
		if err != nil {
			return nil, err
		}
		group.Add(func() error { p.Kill(); return nil }) // nothing is on disk
		run.PIDs = append(run.PIDs, p.PID())
		if i == 0 {
			primary = address
		}
		if err := await(ctx, at, p, address, "PING", "+PONG"); err != nil {
			return nil, err
		}
	}
	run.Addresses = []string{primary}
	if t.Copies > 1 {
		// Only a write that the replica has confirmed shows that it takes the
		// stream: that begins a second after it is reported as connected.
		if err := await(ctx, at, nil, primary, "SET ready 1\r\nWAIT 1 900", "+OK\r\n:1"); err != nil {
			return nil, fmt.Errorf("the replica is not in sync: %w", err)
		}
	}
	return run, nil
}

// args switch off all that writes to disk and what would delay a replica.
func args(address, primary, dir string) []string {
	host, port, _ := net.SplitHostPort(address) // it was made by JoinHostPort
	a := []string{"--bind", host, "--port", port, "--protected-mode", "no", "--dir", dir, "--daemonize", "no",
		"--save", "", "--appendonly", "no", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		"--client-output-buffer-limit", "replica 0 0 0"}
	if primary != "" {
		h, p, _ := net.SplitHostPort(primary)
		a = append(a, "--replicaof", h+" "+p)
	}
	return a
}

// await repeats a command until it is answered as wanted.
func await(ctx context.Context, at system.Place, p *proc.Process, address, command, want string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	var ended <-chan struct{}
	if p != nil {
		ended = p.Ended()
	}
	for {
		got, err := ask(ctx, at, address, command)
		if err == nil && strings.HasPrefix(got, want) {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s ended: %s", p.Name, p.Said())
		case <-ctx.Done():
			return fmt.Errorf("redis at %s answers %q to %s, wanted %s within %v: %w", address, got, command, want, readyLimit, errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ask sends inline commands, one a line.
func ask(ctx context.Context, at system.Place, address, command string) (string, error) {
	c, err := at.Dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // the answer is there
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	lines := strings.Count(command, "\r\n") + 1 // one answer of one line each
	var all []byte
	for b := make([]byte, 256); bytes.Count(all, []byte("\r\n")) < lines; {
		n, err := c.Read(b)
		all = append(all, b[:n]...)
		if err != nil {
			return string(all), err
		}
	}
	return string(bytes.TrimSpace(all)), nil
}
