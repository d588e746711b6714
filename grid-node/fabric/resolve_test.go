package fabric

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var discard = slog.New(slog.DiscardHandler)

func yes(string, netip.Addr) error { return nil }

func options(t *testing.T, content string) Options {
	t.Helper()
	file := filepath.Join(t.TempDir(), "network-status")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{Network: "trading/fabric", Interface: "fabric0", StatusFile: file, Wait: time.Minute}
}

// The kubelet writes the file empty and fills it when the annotation is set: the node
// waits until then.
func TestResolveWaits(t *testing.T) {
	o := options(t, "")
	go func() {
		time.Sleep(2 * poll)
		_ = os.WriteFile(o.StatusFile+".new", []byte(macvlan), 0o600)
		_ = os.Rename(o.StatusFile+".new", o.StatusFile)
	}()
	addr, onFabric, err := o.resolve(t.Context(), discard, yes)
	if err != nil || !onFabric || addr.String() != "10.199.1.7" {
		t.Fatalf("%v, %v, %v", addr, onFabric, err)
	}
}

// A Kubernetes node that lost power restarts its pods with other addresses; the annotation
// is stale until Multus has written the new one. In the first power cut on a cluster the
// node exited here and was restarted once more.
func TestResolveAfterAPowerCut(t *testing.T) {
	o := options(t, macvlan) // 10.199.1.7, stale
	before := netip.MustParseAddr("10.199.1.7")
	now := netip.MustParseAddr("10.199.1.8")
	has := func(device string, addr netip.Addr) error {
		if addr == now {
			return nil
		}
		_ = os.WriteFile(o.StatusFile, []byte(strings.ReplaceAll(macvlan, before.String(), now.String())), 0o600)
		return interfaceHas(loopback(t), addr)
	}
	addr, onFabric, err := o.resolve(t.Context(), discard, has)
	if err != nil || !onFabric || addr != now {
		t.Fatalf("%v, %v, %v; want %v", addr, onFabric, err, now)
	}
}

func loopback(t *testing.T) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	t.Skip("this machine has no loopback interface: bring it up (ip link set lo up)")
	return ""
}

func TestResolveWithoutFabric(t *testing.T) {
	lies := func(device string, addr netip.Addr) error { return errors.New("interface fabric0 has another address") }
	for _, c := range []struct {
		name, content string
		has           func(string, netip.Addr) error
		refuse        string
	}{
		{"nothing came", "", yes, "the annotation k8s.v1.cni.cncf.io/network-status is empty; is Multus on this Kubernetes node"},
		{"another network", `[{"name":"pods","interface":"eth0","ips":["10.0.0.1"]}]`, yes, "network trading/fabric on interface fabric0 is not among the networks of this pod (pods on eth0)"},
		{"nonsense", "eth0", yes, "not a list of networks"},
		{"an address of another pod", macvlan, lies, "has another address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t, c.content)
			o.Wait = 0
			if _, _, err := o.resolve(t.Context(), discard, c.has); err == nil || !strings.Contains(err.Error(), c.refuse) || !strings.Contains(err.Error(), "spec.fabric.fallback") {
				t.Errorf("%v; want %q", err, c.refuse)
			}
			o.Fallback = netip.MustParseAddr("10.0.0.1")
			addr, onFabric, err := o.resolve(t.Context(), discard, c.has)
			if err != nil || onFabric || addr != o.Fallback {
				t.Errorf("with a fallback: %v, %v, %v", addr, onFabric, err)
			}
		})
	}
}

func TestResolveEndsWithItsContext(t *testing.T) {
	o := options(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := o.resolve(ctx, discard, yes); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	good := Options{Network: "a/b", Interface: "fabric0", StatusFile: "f"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		`--fabric-interface: value ""`:      func(o *Options) { o.Interface = "" },
		`--fabric-network-status: value ""`: func(o *Options) { o.StatusFile = "" },
		"--fabric-wait: value -1s":          func(o *Options) { o.Wait = -time.Second },
	} {
		o := good
		change(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestInterfaceHas(t *testing.T) {
	if err := interfaceHas(loopback(t), netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Error(err)
	}
	if err := interfaceHas(loopback(t), netip.MustParseAddr("192.0.2.1")); err == nil || !strings.Contains(err.Error(), "not the address 192.0.2.1") {
		t.Error(err)
	}
	if err := interfaceHas("nothing0", netip.MustParseAddr("127.0.0.1")); err == nil {
		t.Error("an interface that does not exist has an address")
	}
}
