package downstream

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/tail"
)

// process is a server that ends with this process, however that ends.
type process struct {
	cmd    *exec.Cmd
	said   tail.Writer
	exited chan struct{}
	freed  chan struct{} // ends the thread that the kernel watches
}

// stopLimit is how long a server may take to end in order.
const stopLimit = 15 * time.Second

func startProcess(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), exited: make(chan struct{}), freed: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() { // the signal comes when the thread that started it ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- p.cmd.Start()
		<-p.freed
	}()
	if err := <-started; err != nil {
		close(p.freed)
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit status is not used
		close(p.exited)
		close(p.freed)
	}()
	return p, nil
}

// kill ends it without a chance to write anything.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.exited:
	case <-time.After(stopLimit):
		p.kill()
	}
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
