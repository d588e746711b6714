package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// filter cuts addresses of this machine off with rules of iptables. Rules carry
// the pid of their owner, so that what a process that was killed left behind is
// found and removed by the next.
type filter struct {
	mu  sync.Mutex
	cut map[string]bool
}

const ruleTag = "ordergrid-robustness-"

func newFilter() *filter { return &filter{cut: map[string]bool{}} }

// Leftovers lists rules whose process does not run any more.
func Leftovers(ctx context.Context) ([]string, error) {
	out, err := iptables(ctx, "", "-S", "INPUT")
	if err != nil {
		return nil, err
	}
	var left []string
	for line := range strings.Lines(out) {
		_, rest, ok := strings.Cut(line, ruleTag)
		if !ok {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimRight(strings.Fields(rest)[0], `"`))
		if err == nil && pid != os.Getpid() && !runs(pid) {
			left = append(left, strings.TrimSpace(strings.TrimPrefix(line, "-A ")))
		}
	}
	return left, nil
}

// runs reports whether there is such a process.
func runs(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// RemoveLeftovers deletes them and returns what it deleted.
func RemoveLeftovers(ctx context.Context) ([]string, error) {
	left, err := Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	for _, rule := range left {
		args := append([]string{"-D"}, strings.Fields(strings.ReplaceAll(rule, `"`, ""))...)
		if _, err := iptables(ctx, "", args...); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// available returns why packets cannot be dropped here.
func (f *filter) available(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: dropping packets needs root; run as root, or use --target cluster", ErrUnsupported)
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return fmt.Errorf("%w: dropping packets needs iptables, which is not installed (apt-get install iptables)", ErrUnsupported)
	}
	if _, err := iptables(ctx, "", "-S", "INPUT"); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}

// set drops, or no longer drops, all packets of an address. Both rules come into
// force at the same moment.
func (f *filter) set(ctx context.Context, ip string, cut bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut[ip] == cut {
		return nil
	}
	verb := "-D"
	if cut {
		verb = "-I"
	}
	var rules strings.Builder
	rules.WriteString("*filter\n")
	for _, side := range []string{"-s", "-d"} {
		fmt.Fprintf(&rules, "%s INPUT -i lo %s %s -m comment --comment %s%d -j DROP\n", verb, side, ip, ruleTag, os.Getpid())
	}
	rules.WriteString("COMMIT\n")
	if _, err := iptables(ctx, rules.String(), "restore"); err != nil {
		return fmt.Errorf("cut %s off: %w", ip, err)
	}
	f.cut[ip] = cut
	return nil
}

// heal removes all rules.
func (f *filter) heal(ctx context.Context) error {
	f.mu.Lock()
	var ips []string
	for ip, cut := range f.cut {
		if cut {
			ips = append(ips, ip)
		}
	}
	f.mu.Unlock()
	for _, ip := range ips {
		if err := f.set(ctx, ip, false); err != nil {
			return err
		}
	}
	return nil
}

// iptables runs the program, or iptables-restore with rules as its input.
func iptables(ctx context.Context, rules string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "iptables", append([]string{"-w", "5"}, args...)...)
	if args[0] == "restore" {
		cmd = exec.CommandContext(ctx, "iptables-restore", "--noflush", "-w", "5")
		cmd.Stdin = strings.NewReader(rules)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
