package nodefeatures

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryStress checks the two controllers whose groups a stressor joins.
func tryStress() error {
	v1, _ := os.ReadFile("/proc/cgroups")
	v2, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	enabled := controllers(string(v1), string(v2))
	for _, name := range []string{"cpu", "memory"} {
		if !enabled[name] {
			return fmt.Errorf("no cgroup controller %s", name)
		}
	}
	return nil
}

// controllers reads /proc/cgroups, whose lines are name, hierarchy, groups and
// enabled, and cgroup.controllers, a list of names.
func controllers(v1, v2 string) map[string]bool {
	enabled := map[string]bool{}
	for line := range strings.Lines(v1) {
		if f := strings.Fields(line); len(f) == 4 && f[3] == "1" {
			enabled[f[0]] = true
		}
	}
	for name := range strings.FieldsSeq(v2) {
		enabled[name] = true
	}
	return enabled
}

// tryFuse opens, but does not mount, a file system.
func tryFuse() error {
	fd, err := unix.Fsopen("fuse", unix.FSOPEN_CLOEXEC)
	switch {
	case errors.Is(err, unix.ENODEV):
		return errors.New("the kernel has no file system fuse")
	case err != nil:
		return fmt.Errorf("fsopen fuse: %w", err)
	}
	return unix.Close(fd)
}

// tryTime writes to the vdso of a child that is stopped before its first instruction, as TimeChaos
// does to the processes of a pod.
func tryTime() error {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return fmt.Errorf("architecture %s", runtime.GOARCH)
	}
	runtime.LockOSThread() // ptrace belongs to the thread
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
	}()
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	if !status.Stopped() {
		return fmt.Errorf("ptrace: the child did not stop, its status is %#x", status)
	}
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
	if err != nil {
		return err
	}
	defer func() { _ = maps.Close() }()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if !strings.HasSuffix(lines.Text(), "[vdso]") {
			continue
		}
		var start uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-", &start); err != nil {
			return err
		}
		return pokeVDSO(cmd.Process.Pid, start)
	}
	return errors.New("a process has no vdso")
}

func pokeVDSO(pid int, start uintptr) error {
	want, got := []byte("ordergrd"), make([]byte, 8)
	if _, err := unix.PtracePokeData(pid, start, want); err != nil {
		return fmt.Errorf("ptrace cannot write the vdso: %w", err)
	}
	if _, err := unix.PtracePeekData(pid, start, got); err != nil {
		return fmt.Errorf("ptrace cannot read the vdso: %w", err)
	}
	if string(got) != string(want) {
		return errors.New("the bytes written to the vdso by ptrace are missing")
	}
	return nil
}
