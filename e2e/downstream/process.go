package downstream

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// process is a server that ends with this process, however that ends.
type process struct {
	cmd    *exec.Cmd
	said   proc.Tail
	exited chan struct{}
}

// stopLimit is how long a server may take to end in order.
const stopLimit = 15 * time.Second

func startProcess(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := proc.StartCommand(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // its exit status is not used
		close(p.exited)
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
