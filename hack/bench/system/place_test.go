package system

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// What listens in one namespace is reached from another and from this process,
// and not from the machine's own network.
func TestNamespaces(t *testing.T) {
	if m := Missing(); m != "" {
		t.Skip(m)
	}
	at, err := NewNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = at.Close()
		}
	}()
	ln, err := at.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "from the bridge\n")
			_ = c.Close()
		}
	}()
	c, err := at.Dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "from the bridge\n" {
		t.Errorf("%q, %v", b, err)
	}
	host, port, _ := strings.Cut(ln.Addr().String(), ":")
	script := fmt.Sprintf("exec 3<>/dev/tcp/%s/%s && cat <&3", host, port)
	for _, r := range []Role{Client, Primary, Backup} {
		if b, err := at.Command(r, "bash", "-c", script).CombinedOutput(); err != nil || string(b) != "from the bridge\n" {
			t.Errorf("%s: %q, %v", r, b, err)
		}
	}
	inodes := map[string]bool{}
	for _, h := range at.holders {
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", h.PID()))
		if err != nil || inodes[ns] {
			t.Errorf("%s is in %s, %v: not a namespace of its own", h.Name, ns, err)
		}
		inodes[ns] = true
	}
	if own, _ := os.Readlink("/proc/self/ns/net"); inodes[own] {
		t.Error("one of them is this process's")
	}
	closed = true
	if err := at.Close(); err != nil {
		t.Error(err)
	}
	for _, h := range at.holders {
		select {
		case <-h.Ended():
		default:
			t.Errorf("%s is left", h.Name)
		}
	}
}

func TestAddress(t *testing.T) {
	a, err := Address(Loopback{}, Primary, 7400)
	if err != nil || !strings.HasPrefix(a, "127.0.0.1:") || strings.HasSuffix(a, ":7400") {
		t.Errorf("loopback: %s, %v", a, err)
	}
	if a, err = Address(&Namespaces{}, Backup, 7400); err != nil || a != "192.0.2.12:7400" {
		t.Errorf("namespaces: %s, %v", a, err)
	}
}
