package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// tools are the programs a cluster needs from the host, by the Debian package
// that has them. The nodes run them in their own namespaces.
var tools = []artifact.Tool{
	{Program: "ip", Package: "iproute2"},
	{Program: "nsenter", Package: "util-linux"},
	{Program: "mount", Package: "mount"},
	{Program: "containerd", Package: "containerd"},
	{Program: "ctr", Package: "containerd"},
	{Program: "runc", Package: "runc"},
	{Program: "iptables", Package: "iptables"},
	{Program: "nft", Package: "nftables"},
	{Program: "conntrack", Package: "conntrack"},
	{Program: "ethtool", Package: "ethtool"},
	{Program: "socat", Package: "socat"},
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
	return c.steps.Run("Debian packages installed: "+strings.Join(missing, " "), func() error {
		return artifact.InstallPackages(ctx, missing)
	})
}

func missingPackages() []string {
	missing := artifact.MissingTools(tools)
	if _, err := findCNI(); err != nil {
		missing = append(missing, "containernetworking-plugins")
	}
	return missing
}

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
