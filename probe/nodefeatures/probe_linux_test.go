package nodefeatures

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const asNobody = "ORDERGRID_PROBE_AS_NOBODY"

func TestMain(m *testing.M) {
	if os.Getenv(asNobody) == "" {
		os.Exit(m.Run())
	}
	_, err := Probe("")
	if errors.Is(err, errNoPrivilege) {
		os.Exit(0)
	}
	os.Exit(1)
}

// The kernel's own configuration must agree with the trials.
func TestProbeAgreesWithKernelConfig(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("makes network namespaces and cgroups: run it as root")
	}
	r, err := Probe("here")
	if errors.Is(err, errNoPrivilege) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if f, ok := r.Features[name]; !ok || f.Supported == (f.Reason != "") {
			t.Errorf("%s: %+v, in the report: %v", name, f, ok)
		}
	}
	config := kernelConfig(t)
	for option, name := range map[string]Name{
		"NET_SCH_NETEM": Netem, "NET_SCH_TBF": TBF, "NET_SCH_PRIO": Prio, "IP_SET_LIST_SET": IPSet,
		"NETFILTER_XT_MATCH_STATISTIC": IPTablesStatistic, "IP_NF_TARGET_REJECT": IPTablesReject, "NETFILTER_XT_TARGET_NFQUEUE": NFQueue, "FUSE_FS": Fuse,
	} {
		built := strings.Contains(config, "\nCONFIG_"+option+"=y\n")
		absent := strings.Contains(config, "\n# CONFIG_"+option+" is not set\n")
		if got := r.Features[name]; built && !got.Supported || absent && got.Supported {
			t.Errorf("the kernel's configuration has %s built in: %v, absent: %v; tried: %+v", option, built, absent, got)
		}
	}
}

func kernelConfig(t *testing.T) string {
	file, err := os.Open("/proc/config.gz")
	if err != nil {
		t.Skip("the kernel does not export its configuration (CONFIG_IKCONFIG_PROC): ", err)
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Without privilege there is no report, not one with everything unsupported.
func TestProbeWithoutPrivilege(t *testing.T) {
	if unix.Geteuid() != 0 {
		if _, err := Probe(""); err == nil {
			t.Error("a report without privilege")
		}
		return
	}
	self, err := os.Open("/proc/self/exe") // the test's directory may not be readable by the unprivileged user
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = append(os.Environ(), asNobody+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
}

func TestControllers(t *testing.T) {
	for _, c := range []struct {
		v1, v2      string
		cpu, memory bool
	}{
		{"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t5\t1\t1\nmemory\t3\t2\t1\n", "", true, true},
		{"cpu\t5\t1\t1\nmemory\t3\t2\t0\n", "", true, false},
		{"", "cpuset cpu io memory pids\n", true, true},
		{"cpu\t0\t1\t1\n", "memory", true, true},
		{"cpuset 1 1 1\ncpu\n\n\t\nmemory 1 1", "cpuacct", false, false},
		{"", "", false, false},
	} {
		got := controllers(c.v1, c.v2)
		if got["cpu"] != c.cpu || got["memory"] != c.memory {
			t.Errorf("%q %q: %v", c.v1, c.v2, got)
		}
	}
}
