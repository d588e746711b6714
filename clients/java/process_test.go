package java

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// process is a load that runs until its standard input is closed.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    bytes.Buffer // what it prints, and
	errs   bytes.Buffer // on standard error; both to be read when it has exited
	exited chan error
}

func start(t *testing.T, cmd *exec.Cmd, args ...string) *process {
	t.Helper()
	p := &process{cmd: cmd, exited: make(chan error, 1)}
	p.cmd.Args = append(p.cmd.Args, args...)
	cmd.Stderr = &p.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in = in
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(&p.out, lines) // it ends with the process
		p.exited <- cmd.Wait()
	}()
	if err != nil || first != "running\n" {
		t.Fatalf("the load printed %q: %v\n%s", first, err, p.wait())
	}
	return p
}

func (p *process) text() string { return p.out.String() + p.errs.String() }

func (p *process) wait() string {
	_ = p.in.Close() // the process may have ended
	return fmt.Sprintf("%v\n%s", <-p.exited, p.text())
}

// alive fails the test when the load has ended.
func (p *process) alive(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.exited:
		t.Fatalf("the load ended: %v\n%s", err, p.text())
	default:
	}
}

// threads logs the threads of a load that still runs when the test has failed.
func (p *process) threads(t *testing.T) {
	if !t.Failed() || p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	time.Sleep(time.Second)
	_ = p.cmd.Process.Kill() // it may have ended
	t.Logf("load: %s", p.wait())
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.in.Close() // the process may have ended
	if err := <-p.exited; err != nil {
		t.Fatalf("the load: %v\n%s", err, p.text())
	}
	t.Logf("load: %s", p.text())
}
