package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tools are the programs a cluster needs from the host, by the Debian package
// that has them. The nodes run them in their own namespaces.
var tools = []struct{ program, pkg string }{
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
	{"mount", "mount"},
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"iptables", "iptables"},
	{"nft", "nftables"},
	{"conntrack", "conntrack"},
	{"ethtool", "ethtool"},
	{"socat", "socat"},
}

// cniDirs are the places distributions put the CNI plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni", "/usr/lib/cni/bin"}

// Supported tells why this machine cannot hold a local cluster, or nil.
func Supported() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("a local cluster needs Linux, this is %s", runtime.GOOS)
	case os.Geteuid() != 0:
		return errors.New("a local cluster needs root: it makes namespaces, network interfaces and mounts")
	case !exists("/proc/self/ns/net"):
		return errors.New("a local cluster needs a kernel with network namespaces")
	}
	return nil
}

// prepareHost installs what is missing.
func (c *Cluster) prepareHost(ctx context.Context) error {
	if err := Supported(); err != nil {
		return err
	}
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing on this machine, and there is no apt-get to install it: %s (Debian's package names); install it and try again", strings.Join(missing, ", "))
	}
	return c.steps.Run("Debian packages installed: "+strings.Join(missing, " "), func() error {
		return install(ctx, missing)
	})
}

func missingPackages() []string {
	var missing []string
	for _, tool := range tools {
		if _, err := lookPath(tool.program); err != nil && !contains(missing, tool.pkg) {
			missing = append(missing, tool.pkg)
		}
	}
	if _, err := findCNI(); err != nil {
		missing = append(missing, "containernetworking-plugins")
	}
	return missing
}

func contains(list []string, item string) bool {
	for _, have := range list {
		if have == item {
			return true
		}
	}
	return false
}

func install(ctx context.Context, packages []string) error {
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, tail(out, 2000))
		}
	}
	return nil
}

func tail(out []byte, n int) []byte { return out[max(0, len(out)-n):] }

func findCNI() (string, error) {
	for _, dir := range cniDirs {
		if exists(filepath.Join(dir, "ptp")) && exists(filepath.Join(dir, "host-local")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no CNI plugins in %s", strings.Join(cniDirs, ", "))
}

// findFacts looks up what the configuration depends on.
func findFacts(plan *Plan) (hostFacts, error) {
	cni, err := findCNI()
	if err != nil {
		return hostFacts{}, err
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(plan.State, &stat); err != nil {
		return hostFacts{}, err
	}
	facts := hostFacts{snapshotter: "overlayfs", cniBin: cni}
	if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		facts.snapshotter = "native" // the kernel does not stack overlays, as inside a container
	}
	return facts, nil
}

// The host's limit of inotify instances is too low for several kubelets. It is
// the one setting of the host that is changed; the last cluster's down puts it
// back.
const (
	inotifyLimit  = "/proc/sys/fs/inotify/max_user_instances"
	inotifyBefore = "/run/ordergrid/inotify-before"
	inotifyNeeded = 1024
)

func raiseInotify() error {
	before, err := os.ReadFile(inotifyLimit)
	if err != nil {
		return err
	}
	if value, err := strconv.Atoi(strings.TrimSpace(string(before))); err != nil || value >= inotifyNeeded {
		return err
	}
	if err := writeFile(inotifyBefore, before, 0o644); err != nil {
		return err
	}
	return os.WriteFile(inotifyLimit, []byte(strconv.Itoa(inotifyNeeded)), 0)
}

func restoreInotify() error {
	before, err := os.ReadFile(inotifyBefore)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(inotifyLimit, before, 0)
	}
	return err
}
