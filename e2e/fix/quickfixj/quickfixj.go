// Package quickfixj starts QuickFIX/J, the engine of most Java houses, as the counterparty
// of a session: a process of the JDK's source launcher, with a class path that Maven
// fetches.
package quickfixj

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/e2e/maven"
	"github.com/ordergrid/ordergrid/internal/tail"
)

// ErrUnavailable: Java or Maven is not there, or fetching failed.
var ErrUnavailable = errors.New("QuickFIX/J cannot be had here")

// here is the directory of this file.
func here() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// Classpath fetches QuickFIX/J with Maven.
func Classpath(ctx context.Context) (string, error) {
	path, err := maven.Classpath(ctx, "e2e/fix/quickfixj/pom.xml", "3 MB")
	if errors.Is(err, maven.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return path, err
}

// Process is a counterparty.
type Process struct {
	cmd   *exec.Cmd
	in    io.Closer
	Lines chan string // what it prints; closed at its end
	said  tail.Writer
}

// Start starts a counterparty that sends a number of orders.
func Start(classpath, begin, sender, target, address string, orders int) (*Process, error) {
	host, port, _ := strings.Cut(address, ":")
	p := &Process{Lines: make(chan string, 4096)}
	p.cmd = exec.Command("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classpath, filepath.Join(here(), "Counterparty.java"),
		begin, sender, target, host, port, strconv.Itoa(orders))
	p.cmd.Stderr = &p.said
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.Lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.Lines <- s.Text()
		}
	}()
	return p, nil
}

// Stop ends it.
func (p *Process) Stop() {
	_ = p.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	for range p.Lines {
	}
	_ = p.cmd.Wait() // its exit status is not used
	late.Stop()
}

// Said returns the end of what it wrote to its error output.
func (p *Process) Said() string { return p.said.String() }
