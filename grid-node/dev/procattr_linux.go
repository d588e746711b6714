package dev

import (
	"os"
	"syscall"
)

// dieWithParent makes the kernel kill a node when this process dies, however it
// dies. Nodes are in a process group of their own, so that Ctrl-C reaches only
// this process, which then stops them in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
