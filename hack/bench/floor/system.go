package floor

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// args are the arguments of one relay process.
type args func(listenIP, backup string, sink bool, t system.Topology) []string

// relaySystem is a pair of relay processes, or one.
type relaySystem struct {
	name    string
	missing string
	program string
	args    args
}

func (s *relaySystem) Name() string    { return s.name }
func (s *relaySystem) Missing() string { return s.missing }
func (s *relaySystem) Floor() bool     { return true }

// Start implements system.System.
func (s *relaySystem) Start(ctx context.Context, at system.Place, t system.Topology) (*system.Running, error) {
	var group proc.Group
	backup := ""
	pids := []int{}
	start := func(r system.Role, sink bool) (string, error) {
		p, err := proc.Start(s.name+" "+r.String(), at.Command(r, s.program, s.args(at.IP(r), backup, sink, t)...))
		if err != nil {
			return "", err
		}
		group.Add(func() error { p.Kill(); return nil }) // it holds nothing that needs an orderly end
		pids = append([]int{p.PID()}, pids...)
		return p.Line(ctx, "listening")
	}
	var err error
	if t.Copies > 1 && !t.Reads {
		backup, err = start(system.Backup, true)
	}
	var address string
	if err == nil {
		address, err = start(system.Primary, false)
	}
	if err != nil {
		return nil, errors.Join(err, group.Stop())
	}
	return &system.Running{Driver: generator.Raw, Addresses: []string{address}, PIDs: pids, Stop: group.Stop}, nil
}

// Go is the relay in Go; self is this program, which runs it as the command "relay".
func Go(self string) system.System {
	return &relaySystem{name: "floor-go", program: self, args: func(ip, backup string, sink bool, t system.Topology) []string {
		a := []string{"relay", "--listen", net.JoinHostPort(ip, "0"), "--request", strconv.Itoa(t.Request), "--reply", strconv.Itoa(t.Reply)}
		if sink {
			a = append(a, "--sink")
		}
		if backup != "" {
			a = append(a, "--backup", backup)
		}
		return a
	}}
}

// C are the relays in C, compiled into dir when they are first needed. Without
// a compiler they report it.
func C(dir string) []system.System {
	program, missing := "", ""
	cc := compiler()
	if cc == "" {
		missing = "no C compiler (apt-get install gcc); the floor in Go is there and within some per cent of it"
	} else {
		var err error
		if program, err = compile(cc, dir); err != nil {
			missing = err.Error()
		}
	}
	relay := func(name, kind, sinkKind string) system.System {
		return &relaySystem{name: name, missing: missing, program: program, args: func(ip, backup string, sink bool, t system.Topology) []string {
			host, port := ip, "0"
			if backup != "" {
				host, port, _ = net.SplitHostPort(backup) // a relay said it
			}
			if sink {
				return []string{ip, host, port, strconv.Itoa(t.Request), strconv.Itoa(t.Reply), sinkKind}
			}
			return []string{ip, host, port, strconv.Itoa(t.Request), strconv.Itoa(t.Reply), kind}
		}}
	}
	return []system.System{relay("floor-c", "epoll", "sink"), relay("floor-c-threads", "threads", "sink-threads")}
}

// compiler is the C compiler of this machine, "" without one.
func compiler() string {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
