package fabric

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// of a real pod: Multus 4.2 with a macvlan network, and an SR-IOV network as its device plugin reports it.
const macvlan = `[{"name":"pods","interface":"eth0","ips":["10.180.65.4"],"mac":"f2:8b:7c:5f:61:39","default":true,"dns":{},"gateway":["10.180.65.1"]},
	{"name":"trading/fabric","interface":"fabric0","ips":["10.199.1.7"],"mac":"3a:e0:3d:27:3f:26","dns":{}}]`

const sriov = `[{"name":"cluster","interface":"eth0","ips":["10.1.2.3","fd00::3"],"default":true,"dns":{}},
	{"name":"default/ib","interface":"fabric0","ips":["fd01::9","192.168.5.9"],"dns":{},
	 "device-info":{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:18:02.5","rdma-device":"mlx5_3"}}}]`

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name, value, network, device string
		want                         string
		refuse                       string
		wait                         bool
	}{
		{name: "macvlan", value: macvlan, network: "trading/fabric", device: "fabric0", want: "10.199.1.7"},
		{name: "IPv4 goes first", value: sriov, network: "default/ib", device: "fabric0", want: "192.168.5.9"},
		{name: "IPv6 only", value: `[{"name":"a/b","interface":"f0","ips":["fd01::9"]}]`, network: "a/b", device: "f0", want: "fd01::9"},
		{name: "with its prefix", value: `[{"name":"a/b","interface":"f0","ips":["10.0.0.9/24"]}]`, network: "a/b", device: "f0", want: "10.0.0.9"},
		{name: "mapped", value: `[{"name":"a/b","interface":"f0","ips":["::ffff:10.0.0.9"]}]`, network: "a/b", device: "f0", want: "10.0.0.9"},
		{name: "the second attachment of a network", value: `[{"name":"a/b","interface":"f0","ips":["10.0.0.1"]},{"name":"a/b","interface":"f1","ips":["10.0.0.2"]}]`, network: "a/b", device: "f1", want: "10.0.0.2"},

		{name: "another namespace", value: macvlan, network: "default/fabric", device: "fabric0", wait: true,
			refuse: "network default/fabric on interface fabric0 is not among the networks of this pod (pods on eth0, trading/fabric on fabric0)"},
		{name: "another interface", value: macvlan, network: "trading/fabric", device: "net1", wait: true, refuse: "is not among"},
		{name: "no networks", value: `[]`, network: "a/b", device: "f0", wait: true, refuse: "(none)"},
		{name: "null", value: `null`, network: "a/b", device: "f0", wait: true, refuse: "(none)"},
		{name: "many others", value: `[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"},{"name":"f"}]`, network: "a/b", device: "f0", wait: true, refuse: "(a, b, c, d, 2 more)"},
		{name: "no address", value: `[{"name":"a/b","interface":"f0"}]`, network: "a/b", device: "f0", refuse: "needs an IPAM plugin"},
		{name: "link-local only", value: `[{"name":"a/b","interface":"f0","ips":["fe80::1","169.254.0.4"]}]`, network: "a/b", device: "f0", refuse: "needs an IPAM plugin"},
		{name: "loopback, multicast, nothing", value: `[{"name":"a/b","interface":"f0","ips":["127.0.0.1","224.0.0.1","0.0.0.0","::1"]}]`, network: "a/b", device: "f0", refuse: "needs an IPAM plugin"},

		{name: "not JSON", value: `eth0`, refuse: "not a list of networks"},
		{name: "an object", value: `{"name":"a/b"}`, refuse: "not a list of networks"},
		{name: "a number for a name", value: `[{"name":7}]`, refuse: "not a list of networks"},
		{name: "cut off", value: macvlan[:60], refuse: "not a list of networks"},
		{name: "no IP address", value: `[{"name":"a/b","interface":"f0","ips":["fabric.example"]}]`, refuse: `address "fabric.example", allowed: an IP address without a zone`},
		{name: "a zone", value: `[{"name":"a/b","interface":"f0","ips":["fe80::1%eth0"]}]`, refuse: "without a zone"},
		{name: "a long address", value: `[{"name":"a/b","ips":["` + strings.Repeat("1", 1000) + `"]}]`, refuse: "allowed: an IP address"},
		{name: "a line break in a name", value: `[{"name":"a\nlevel=ERROR"}]`, refuse: "printable"},
		{name: "a path for an interface", value: `[{"name":"a","interface":"../../etc"}]`, refuse: "printable"},
		{name: "a long interface", value: `[{"name":"a","interface":"abcdefghijklmnop"}]`, refuse: "up to 15"},
		{name: "too many networks", value: "[" + strings.Repeat("{},", maxAttachments) + "{}]", refuse: "65 networks, allowed: 64"},
		{name: "too many addresses", value: `[{"ips":[` + strings.Repeat(`"10.0.0.1",`, maxAddresses) + `"10.0.0.1"]}]`, refuse: "65 addresses"},
		{name: "too long", value: strings.Repeat(" ", maxStatus+1), refuse: "allowed: 262144"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := ParseStatus([]byte(c.value))
			var got netip.Addr
			if err == nil {
				got, err = Find(list, c.network, c.device)
			}
			if c.refuse == "" {
				if err != nil || got.String() != c.want {
					t.Fatalf("%v, %v; want %s", got, err, c.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.refuse) || errors.Is(err, ErrNotAttached) != c.wait {
				t.Fatalf("%v, %v; want %q, worth waiting: %v", got, err, c.refuse, c.wait)
			}
		})
	}
}

// FuzzStatus: for any annotation, the result can be logged, listened on and published.
func FuzzStatus(f *testing.F) {
	for _, s := range []string{macvlan, sriov, "", "null", `[{"name":"a/b","interface":"f0","ips":["::ffff:10.0.0.9/96"]}]`} {
		f.Add([]byte(s), "trading/fabric", "fabric0")
	}
	f.Fuzz(func(t *testing.T, value []byte, network, device string) {
		list, err := ParseStatus(value)
		if err != nil {
			return
		}
		for _, a := range list {
			if !plain(a.Network, maxName) || !plain(a.Interface, maxInterface) {
				t.Fatalf("accepted %+q", a)
			}
		}
		addr, err := Find(list, network, device)
		if err != nil {
			if len(err.Error()) > 4096+len(network)+len(device) {
				t.Fatalf("a message of %d bytes", len(err.Error()))
			}
			return
		}
		if !addr.IsGlobalUnicast() || addr.Is4In6() || addr.Zone() != "" {
			t.Fatalf("accepted %v", addr)
		}
		if again, err := netip.ParseAddr(addr.String()); err != nil || again != addr {
			t.Fatalf("%v reads back as %v, %v", addr, again, err)
		}
	})
}
