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
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/tail"
)

// ErrUnavailable: Java or Maven is not there, or fetching failed.
var ErrUnavailable = errors.New("QuickFIX/J cannot be had here")

// here is the directory of this file.
func here() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// fetchTime bounds fetching the class path, the first time.
const fetchTime = 5 * time.Minute

// Classpath fetches QuickFIX/J with Maven.
func Classpath(ctx context.Context) (string, error) {
	for _, program := range []string{"javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	pom, list := filepath.Join(here(), "pom.xml"), filepath.Join(here(), "..", "..", "..", "out", "fix", "quickfixj.classpath")
	if path, ok := fetched(pom, list); ok {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-q", "-f", pom, "dependency:build-classpath", "-Dmdep.outputFile="+list)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: mvn dependency:build-classpath of %s (the first time it fetches 3 MB): %w\n%s", ErrUnavailable, pom, err, said)
	}
	if path, ok := fetched(pom, list); ok {
		return path, nil
	}
	return "", fmt.Errorf("%w: %s has no class path", ErrUnavailable, list)
}

// fetched reports whether the list of an earlier time is newer than the pom, and all of it still there.
func fetched(pom, list string) (string, bool) {
	of, err1 := os.Stat(pom)
	is, err2 := os.Stat(list)
	text, err3 := os.ReadFile(list)
	if errors.Join(err1, err2, err3) != nil || is.ModTime().Before(of.ModTime()) {
		return "", false
	}
	path := strings.TrimSpace(string(text))
	for _, jar := range filepath.SplitList(path) {
		if _, err := os.Stat(jar); err != nil {
			return "", false
		}
	}
	return path, path != ""
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
