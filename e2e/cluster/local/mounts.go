package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// isolate detaches a new machine from the host's mounts and processes and
// makes it a router. It runs before the machine has a network.
func isolate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	settings := []struct{ name, value string }{
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv4/conf/all/send_redirects", "0"}, // the switch forwards back where packets came from
		{"net/ipv4/conf/default/send_redirects", "0"},
		{"net/ipv6/conf/all/disable_ipv6", "1"}, // no background chatter on the bridge
		{"net/ipv6/conf/default/disable_ipv6", "1"},
		{"net/bridge/bridge-nf-call-iptables", "0"}, // the bridge is a cable, not a firewall
		{"net/bridge/bridge-nf-call-ip6tables", "0"},
		{"net/bridge/bridge-nf-call-arptables", "0"},
	}
	for _, s := range settings {
		err := os.WriteFile("/proc/sys/"+s.name, []byte(s.value), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without it
			return fmt.Errorf("setting %s: %w", s.name, err)
		}
	}
	return nil
}

// binding makes a directory of the host appear inside the machine. Sources are
// opened before anything is mounted over them.
type binding struct {
	source *os.File
	target string
	flags  uintptr
}

// mounts gives the machine its own /run, /sys, /var/lib and /var/log.
func (m *MachineSpec) mounts() error {
	if err := unix.Sethostname([]byte(m.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	bindings, err := m.openBindings()
	if err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/var/lib", "/var/log"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("mounting a tmpfs on %s: %w", dir, err)
		}
	}
	for _, b := range bindings {
		if err := b.mount(); err != nil {
			return err
		}
	}
	if err := freshSys(); err != nil {
		return err
	}
	if err := shieldKernel(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts with containers: %w", err)
	}
	return nil
}

func (m *MachineSpec) openBindings() ([]binding, error) {
	wanted := []struct {
		source, target string
		flags          uintptr
	}{
		{m.Bin, machineBin, unix.MS_RDONLY},
		{filepath.Join(m.Dir, "etc"), machineEtc, unix.MS_RDONLY},
		{filepath.Join(m.Dir, "log"), machineLog, 0},
		{filepath.Join(m.Dir, "disk"), machineDisk, 0},
	}
	if m.Node {
		// Addresses of pods are kept on disk, as on a real node, so that a pod
		// does not come back with the address another had before.
		for name, target := range map[string]string{
			"kubelet": "/var/lib/kubelet", "containerd": "/var/lib/containerd", "cni": "/var/lib/cni", "pods": "/var/log/pods",
		} {
			wanted = append(wanted, struct {
				source, target string
				flags          uintptr
			}{filepath.Join(m.Dir, "disk", name), target, 0})
		}
	}
	var bindings []binding
	for _, w := range wanted {
		if w.source != m.Bin {
			if err := os.MkdirAll(w.source, 0o755); err != nil {
				return nil, err
			}
		}
		source, err := os.OpenFile(w.source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, binding{source: source, target: w.target, flags: w.flags})
	}
	return bindings, nil
}

func (b *binding) mount() error {
	defer b.source.Close()
	if err := os.MkdirAll(b.target, 0o755); err != nil {
		return err
	}
	from := fmt.Sprintf("/proc/self/fd/%d", b.source.Fd())
	if err := unix.Mount(from, b.target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", b.source.Name(), b.target, err)
	}
	if b.flags == 0 {
		return nil
	}
	return remount(b.target, b.flags)
}

func remount(target string, flags uintptr) error {
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
		return fmt.Errorf("remounting %s: %w", target, err)
	}
	return nil
}

// kernelSettings are the parameters of the whole host that a kubelet insists on
// and would set.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// shieldKernel shows the machine those parameters as it wants them, in plain
// files, so that the host, which may be a workstation, keeps its own.
func shieldKernel() error {
	for name, value := range kernelSettings {
		real, shown := "/proc/sys/"+name, "/run/ordergrid/kernel/"+name
		if !exists(real) {
			continue
		}
		if err := writeFile(shown, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(shown, real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", shown, real, err)
		}
	}
	return nil
}

// freshSys mounts a /sys that shows this machine's network interfaces, with
// the host's cgroup tree back in its place.
func freshSys() error {
	const keep = "/run/ordergrid/cgroup"
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(cgroupMount, keep, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keeping %s: %w", cgroupMount, err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mounting /sys: %w", err)
	}
	if err := unix.Mount(keep, cgroupMount, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("putting %s back: %w", cgroupMount, err)
	}
	if err := unix.Unmount(keep, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting %s: %w", keep, err)
	}
	return os.Remove(keep)
}
