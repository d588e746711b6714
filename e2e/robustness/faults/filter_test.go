package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func needFilter(t *testing.T) *filter {
	t.Helper()
	f := newFilter()
	if err := f.available(t.Context()); err != nil {
		if !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := f.heal(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return f
}

// A cut address is unreachable, and reachable again after the cut; what was sent
// during the cut arrives.
func TestCut(t *testing.T) {
	f := needFilter(t)
	const ip = "127.77.66.1"
	ln, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Skipf("%s is no address of this machine: %v", ip, err)
	}
	defer ln.Close()
	heard := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		b := make([]byte, 5)
		_, _ = c.Read(b)
		heard <- string(b)
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := f.set(t.Context(), ip, true); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatalf("a silent cut is not noticed by the sender: %v", err)
	}
	if other, err := net.DialTimeout("tcp", ln.Addr().String(), 100*time.Millisecond); err == nil {
		other.Close()
		t.Fatal("a cut address accepts connections")
	}
	select {
	case s := <-heard:
		t.Fatalf("%q went through the cut", s)
	default:
	}
	if err := errors.Join(f.set(t.Context(), ip, true), f.set(t.Context(), ip, false), f.set(t.Context(), ip, false)); err != nil {
		t.Fatal(err)
	}
	if s := <-heard; s != "hello" {
		t.Fatalf("heard %q", s)
	}
	if rules, err := iptables(t.Context(), "", "-S", "INPUT"); err != nil || strings.Contains(rules, ip) {
		t.Fatalf("%v, left: %s", err, rules)
	}
}

// What a process that was killed left is found and removed; what belongs to one
// that runs is not touched.
func TestLeftovers(t *testing.T) {
	f := needFilter(t)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	rule := []string{"INPUT", "-i", "lo", "-s", "127.77.66.2", "-m", "comment", "--comment", fmt.Sprintf("%s%d", ruleTag, dead.Process.Pid), "-j", "DROP"}
	if _, err := iptables(t.Context(), "", append([]string{"-I"}, rule...)...); err != nil {
		t.Fatal(err)
	}
	if err := f.set(t.Context(), "127.77.66.3", true); err != nil {
		t.Fatal(err)
	}
	removed, err := RemoveLeftovers(t.Context())
	if err != nil || len(removed) != 1 || !strings.Contains(removed[0], "127.77.66.2") {
		t.Fatalf("%v, removed %q", err, removed)
	}
	rules, err := iptables(t.Context(), "", "-S", "INPUT")
	if err != nil || strings.Contains(rules, "127.77.66.2") || strings.Count(rules, "127.77.66.3") != 2 {
		t.Fatalf("%v, rules: %s", err, rules)
	}
	if left, err := Leftovers(t.Context()); err != nil || len(left) != 0 {
		t.Fatalf("%v, left %q", err, left)
	}
}

func TestGridProcessesAreOursOnly(t *testing.T) {
	for ip, pid := range GridProcesses() {
		if net.ParseIP(ip) == nil || pid <= 0 || pid == os.Getpid() {
			t.Errorf("%q is process %d", ip, pid)
		}
	}
}
