// Package acceptors runs FIX acceptors that replicate nothing, as a measure of the grid behind its order-gateway: the
// gateway's own acceptor without a grid, QuickFIX/J and QuickFIX (C++). Each keeps its sessions in memory, checks messages
// by no dictionary, writes no log, and reports an order as new when it has read it.
package acceptors

import (
	"context"
	_ "embed" // sources of acceptors
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Sessions is how many clients may log on.
const Sessions = 64

// target is the CompID of the acceptor, of the length of that in the published order.
const target = "ORDERGRID"

// Senders are the CompIDs of clients.
func Senders() (names []string) {
	for n := range Sessions {
		names = append(names, fmt.Sprintf("PROBE%07d", n))
	}
	return names
}

// engine is one of them.
type engine struct {
	name    string
	missing string
	// command is what it is started by, but for its address and sessions: HOST, PORT, TARGET, SENDER...
	command func(ctx context.Context) ([]string, error)
	built   []string
}

func (a *engine) Name() string    { return a.name }
func (a *engine) Missing() string { return a.missing }
func (a *engine) Floor() bool     { return false }

// Start implements system.System.
func (a *engine) Start(ctx context.Context, at system.Place, t system.Topology) (*system.Running, error) {
	if a.built == nil {
		var err error
		if a.built, err = a.command(ctx); err != nil {
			return nil, err
		}
	}
	address, err := system.Address(at, system.Primary, 7440)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	args := append(append(append([]string(nil), a.built...), host, port, target), Senders()...)
	p, err := proc.Start(a.name, at.Command(system.Primary, args[0], args[1:]...))
	if err != nil {
		return nil, err
	}
	var group proc.Group
	group.Add(func() error { p.Kill(); return nil }) // it holds nothing that needs an orderly end
	if _, err := p.Line(ctx, "listening"); err != nil {
		return nil, errors.Join(err, group.Stop())
	}
	return &system.Running{Driver: generator.FIX, Addresses: []string{address}, PIDs: []int{p.PID()},
		FIX: &generator.FIXLogin{Senders: Senders(), Target: target}, Stop: group.Stop}, nil
}

// Own is the acceptor of order-gateway; self is this program, which runs it as the command "acceptor".
func Own(self string) system.System {
	return &engine{name: cases.FIXFloor, command: func(context.Context) ([]string, error) { return []string{self, "acceptor"}, nil }}
}

//go:embed source/Acceptor.java
var javaSource []byte

// QuickFIXJ is fetched by Maven, and compiled into dir.
func QuickFIXJ(dir string) system.System {
	a := &engine{name: cases.QuickFIXJ}
	java, err1 := exec.LookPath("java")
	javac, err2 := exec.LookPath("javac")
	_, err3 := exec.LookPath("mvn")
	if errors.Join(err1, err2, err3) != nil {
		a.missing = "QuickFIX/J needs a JDK and Maven (apt-get install default-jdk-headless maven)"
	}
	a.command = func(ctx context.Context) ([]string, error) {
		classpath, err := artifact.Classpath(ctx, "e2e/fix/quickfixj/pom.xml", "3 MB")
		if err != nil {
			return nil, err
		}
		source := filepath.Join(dir, "Acceptor.java")
		if err := os.WriteFile(source, javaSource, 0o600); err != nil {
			return nil, err
		}
		if out, err := exec.CommandContext(ctx, javac, "-d", dir, "-cp", classpath, source).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("javac Acceptor.java: %w: %s", err, out)
		}
		return []string{java, "-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-XX:-UsePerfData", "-cp", dir + string(os.PathListSeparator) + classpath, "Acceptor"}, nil
	}
	return a
}

//go:embed source/acceptor.cpp
var cppSource []byte

// QuickFIX is Debian's, for which a program is compiled into dir.
func QuickFIX(dir string) system.System {
	a := &engine{name: cases.QuickFIX}
	cxx, err := exec.LookPath("c++")
	if _, stat := os.Stat("/usr/include/quickfix/Session.h"); err != nil || stat != nil {
		a.missing = "QuickFIX needs its library and a C++ compiler (apt-get install libquickfix-dev g++)"
	}
	a.command = func(ctx context.Context) ([]string, error) {
		source, program := filepath.Join(dir, "acceptor.cpp"), filepath.Join(dir, "acceptor-quickfix")
		if err := os.WriteFile(source, cppSource, 0o600); err != nil {
			return nil, err
		}
		if out, err := exec.CommandContext(ctx, cxx, "-std=c++11", "-O2", "-w", "-o", program, source, "-lquickfix", "-lpthread").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s cannot compile the acceptor: %w: %s", cxx, err, strings.TrimSpace(string(out)))
		}
		return []string{program}, nil
	}
	return a
}

// All of them.
func All(self, dir string) []system.System {
	return []system.System{Own(self), QuickFIXJ(dir), QuickFIX(dir)}
}
