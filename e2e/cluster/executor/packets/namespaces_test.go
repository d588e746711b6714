package packets

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is two network namespaces with a cable between them: the pod's and its
// peer's, which has a second address.
type pair struct {
	pod, peer Namespace
}

const (
	podAddr, peerAddr, otherAddr = "10.99.0.1", "10.99.0.2", "10.99.0.3"
)

// newPair skips the test where namespaces cannot be made.
func newPair(t testing.TB) *pair {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces and netfilter queues: run it as root")
	}
	for _, program := range []string{"nsenter", "ip", "iptables-restore"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s (Debian: util-linux, iproute2, iptables): %v", program, err)
		}
	}
	p := &pair{pod: namespace(t), peer: namespace(t)}
	p.ip(t, p.pod, "link set lo up", "link add data0 type veth peer name data0 netns "+pid(p.peer),
		"addr add "+podAddr+"/24 dev data0", "link set data0 up")
	p.ip(t, p.peer, "link set lo up", "addr add "+peerAddr+"/24 dev data0", "addr add "+otherAddr+"/24 dev data0", "link set data0 up")
	return p
}

// namespace is that of a process which sleeps for a limited time, in case this one is killed.
func namespace(t testing.TB) Namespace {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Skipf("no network namespace can be made here: %v; run it as root outside a container, or in a privileged one", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return Namespace{PID: cmd.Process.Pid}
}

func pid(n Namespace) string { return strings.Split(n.path(), "/")[2] }

func (p *pair) ip(t testing.TB, n Namespace, lines ...string) {
	t.Helper()
	if _, err := n.run(context.Background(), strings.Join(lines, "\n")+"\n", "ip", "-batch", "-"); err != nil {
		t.Fatal(err)
	}
}

// start injects a fault into the pod's namespace and reverts it at the end.
func (p *pair) start(t testing.TB, spec Spec) *Fault {
	t.Helper()
	if spec.ID == "" {
		spec.ID = "trading-drill-1-0a1b2c3d"
	}
	if spec.Queue == 0 {
		spec.Queue = 9000
	}
	if spec.Deadline.IsZero() {
		spec.Deadline = time.Now().Add(time.Minute)
	}
	f, err := Start(t.Context(), p.pod, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop(context.Background()) })
	return f
}

// counter is one of a fault's.
func counter(t testing.TB, f *Fault, name string) int64 {
	t.Helper()
	all, err := f.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all["failed"] != 0 || all["overflow"] != 0 {
		t.Fatalf("counters: %v", all)
	}
	return all[name]
}

func (p *pair) noRules(t testing.TB) {
	t.Helper()
	saved, err := p.pod.run(t.Context(), "", "iptables-save", "-t", table)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(saved, chainPrefix) || strings.Contains(saved, "-A ") {
		t.Errorf("rules are left:\n%s", saved)
	}
}

func peers(t testing.TB, addrs ...string) []netip.Addr {
	t.Helper()
	var all []netip.Addr
	for _, a := range addrs {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// udp opens a socket in a namespace.
func udp(t testing.TB, n Namespace, addr string) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := n.do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadBuffer(8 << 20)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// echo is a TCP connection from the pod to a peer that sends back what it gets.
func (p *pair) echo(t testing.TB, addr string) net.Conn {
	t.Helper()
	var listener net.Listener
	err := p.peer.do(func() (err error) {
		listener, err = net.Listen("tcp4", addr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buffer := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			if _, err := conn.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	var conn net.Conn
	err = p.pod.do(func() (err error) {
		conn, err = net.Dial("tcp4", listener.Addr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// roundTrip of eight bytes.
func roundTrip(t testing.TB, conn net.Conn) time.Duration {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	var buffer [8]byte
	start := time.Now()
	if _, err := conn.Write(buffer[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(buffer[:]); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}
