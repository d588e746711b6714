package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// superviseCommand is the hidden subcommand a machine's first process runs.
const superviseCommand = "supervise"

// birth identifies a process beyond the reuse of its number.
type birth struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
}

// startMachine switches a machine on. It must be off.
func (p *Plan) startMachine(ctx context.Context, name string, switchPID int) (pid int, err error) {
	services, err := p.services(name)
	if err != nil {
		return 0, err
	}
	// What the machine's pods left when the power went.
	if err := removeCgroup(p.machineCgroup(name)); err != nil {
		return 0, err
	}
	if err := createCgroup(p.machineCgroup(name) + "/system"); err != nil {
		return 0, err
	}
	spec := MachineSpec{Name: name, Bin: p.Bin, Dir: p.machineDir(name), Services: services}
	spec.Node = name != switchName && name != controlPlaneName
	process, stdin, err := p.spawn(name)
	if err != nil {
		return 0, err
	}
	defer stdin.Close()
	pid = process.Pid
	defer func() {
		if err != nil {
			_ = process.Kill()
			_, _ = process.Wait()
		}
	}()
	if err := errors.Join(joinCgroup(p.machineCgroup(name)+"/system", pid), p.recordBirth(name, pid)); err != nil {
		return 0, err
	}
	if err := p.connect(ctx, name, pid, switchPID); err != nil {
		return 0, fmt.Errorf("connecting %s: %w", name, err)
	}
	if err := json.NewEncoder(stdin).Encode(spec); err != nil {
		return 0, fmt.Errorf("telling %s what to run: %w", name, err)
	}
	go func() { _, _ = process.Wait() }() // the surviving parent reaps it
	return pid, nil
}

// spawn creates the machine's namespaces with the supervisor as first process,
// detached from the caller's terminal and session.
func (p *Plan) spawn(name string) (*os.Process, *os.File, error) {
	logDir := filepath.Join(p.machineDir(name), "log")
	if err := os.MkdirAll(logDir, 0o755); err != nil {
		return nil, nil, err
	}
	log, err := os.OpenFile(filepath.Join(logDir, "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer read.Close()
	if err := keepFiles(); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(p.supervisor(), superviseCommand)
	cmd.Dir, cmd.Env = "/", machineEnv()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		write.Close()
		return nil, nil, fmt.Errorf("creating the namespaces of %s: %w", name, err)
	}
	return cmd.Process, write, nil
}

// keepFiles has no child inherit what this process was itself given open: a
// machine runs on for days, and with it a lock its starter's shell held.
func keepFiles() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping open files from a machine: %w", err)
	}
	return nil
}

// supervisor is the copy of this program the machines run; go run deletes its own.
func (p *Plan) supervisor() string { return filepath.Join(p.State, "bin", "cluster") }

func (p *Plan) birthFile(name string) string {
	return filepath.Join(p.machineDir(name), "process.json")
}

func (p *Plan) recordBirth(name string, pid int) error {
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	content, err := json.Marshal(birth{PID: pid, Start: start})
	if err != nil {
		return err
	}
	return writeFile(p.birthFile(name), content, 0o644)
}

// machinePID is the machine's first process, or 0 when it is off.
func (p *Plan) machinePID(name string) int { return livePID(p.birthFile(name)) }

// livePID is the process a file records, or 0 if it has ended.
func livePID(file string) int {
	content, err := os.ReadFile(file)
	var b birth
	if err != nil || json.Unmarshal(content, &b) != nil {
		return 0
	}
	if start, err := startTime(b.PID); err != nil || start != b.Start {
		return 0
	}
	return b.PID
}

// startTime reads when a process started; a zombie counts as gone.
func startTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(stat))
}

func parseStartTime(stat string) (uint64, error) {
	// The command name, in parentheses, may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/*/stat has %d fields after the name, not 20", len(fields))
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// killMachine cuts a machine's power: the kernel kills every process of its
// process namespace, and its mounts, interfaces and routes go with them.
func (p *Plan) killMachine(name string) error {
	if pid := p.machinePID(name); pid != 0 {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("killing %s (process %d): %w", name, pid, err)
		}
	}
	if err := killCgroup(p.machineCgroup(name)); err != nil {
		return err
	}
	return removeCgroup(p.machineCgroup(name))
}

// killCgroup kills all processes of a cgroup tree and waits until they are
// gone. Repeats, because processes may be forking.
func killCgroup(name string) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		pids, err := cgroupProcesses(name)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes that do not die: %v", pids)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}
