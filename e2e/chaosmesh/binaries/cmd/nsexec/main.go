// Command nsexec runs a command in namespaces of another process, as Chaos Mesh's
// daemon asks for it:
//
//	nsexec [-m PATH] [-i PATH] [-n PATH] [-p PATH] -- COMMAND [ARGUMENT...]
//
// It takes the place of Chaos Mesh's own helper, which is published as a binary
// only. That one's -l, a command of the daemon's image in the mount namespace of a
// pod, is what IOChaos and HTTPChaos need; it is refused here.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// kinds are the flags and the namespaces they name. The mount namespace is last:
// afterwards the paths of the others would be looked up in it.
var kinds = []struct {
	flag string
	kind int
}{{"-i", unix.CLONE_NEWIPC}, {"-n", unix.CLONE_NEWNET}, {"-p", unix.CLONE_NEWPID}, {"-m", unix.CLONE_NEWNS}}

func main() {
	runtime.LockOSThread() // namespaces belong to the thread
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "nsexec:", err)
		code = 125
	}
	os.Exit(code)
}

// dieTogether, as first argument, is how the child of runChild is started.
const dieTogether = "-die-with-parent"

func run(args []string) (int, error) {
	if len(args) > 2 && args[0] == dieTogether {
		// os/exec can ask for this too, but takes a parent in another PID
		// namespace for a dead one.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return 0, err
		}
		return 0, syscall.Exec(args[1], args[2:], os.Environ())
	}
	paths, command, err := parse(args)
	if err != nil {
		return 0, err
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return 0, err
	}
	for _, k := range kinds {
		if path, asked := paths[k.flag]; asked {
			if err := enter(path, k.kind); err != nil {
				return 0, err
			}
		}
	}
	if _, asked := paths["-p"]; !asked {
		return 0, syscall.Exec(program, command, os.Environ())
	}
	return runChild(program, command) // only children are in another PID namespace
}

func parse(args []string) (paths map[string]string, command []string, err error) {
	paths = map[string]string{}
	for i := 0; i < len(args); i += 2 {
		switch arg := args[i]; {
		case arg == "--" && i+1 < len(args):
			return paths, args[i+1:], nil
		case arg == "-l":
			return nil, nil, errors.New("-l, a command of this image in a pod's mount namespace, is not available here: IOChaos and HTTPChaos need Chaos Mesh's published image")
		case (arg == "-i" || arg == "-n" || arg == "-p" || arg == "-m") && i+1 < len(args):
			paths[arg] = args[i+1]
		default:
			return nil, nil, fmt.Errorf("%q: usage: nsexec [-m PATH] [-i PATH] [-n PATH] [-p PATH] -- COMMAND [ARGUMENT...]", arg)
		}
	}
	return nil, nil, errors.New("no command: it goes behind --")
}

func enter(path string, kind int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if kind == unix.CLONE_NEWNS {
		// A thread that shares its root and working directory may not enter.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
	}
	if err := unix.Setns(fd, kind); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	return nil
}

// runChild runs the command as a child that gets the signals this process gets,
// and leaves nothing of it: the daemon ends a fault by ending this process.
func runChild(program string, command []string) (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	cmd := exec.Command("/proc/self/exe", append([]string{dieTogether, program}, command...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}
