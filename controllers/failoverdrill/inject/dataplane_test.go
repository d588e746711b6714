package inject

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPlaneOf(t *testing.T) {
	const two = `[{"name":"cbr0","interface":"eth0","ips":["10.1.0.1"],"default":true},{"name":"t/fast","interface":"net1","ips":["192.168.7.1","fd00::1"]}]`
	addresses := func(texts ...string) (out []netip.Addr) {
		for _, text := range texts {
			out = append(out, netip.MustParseAddr(text))
		}
		return out
	}
	for name, c := range map[string]struct {
		annotation string
		given      []netip.Addr
		network    string
		want       Plane
		says       string
	}{
		"one network":                      {"", addresses("10.1.0.1"), "", Plane{Address: netip.MustParseAddr("10.1.0.1")}, ""},
		"one network, nothing known":       {"", nil, "", Plane{Address: netip.MustParseAddr("10.1.0.1")}, ""},
		"an address of the process before": {"", addresses("10.1.0.77"), "", Plane{Address: netip.MustParseAddr("10.1.0.1")}, ""},
		"orders on the second":             {two, addresses("192.168.7.1"), "", Plane{netip.MustParseAddr("192.168.7.1"), "net1", "t/fast"}, ""},
		"orders on the second, IPv6":       {two, addresses("fd00::1"), "", Plane{netip.MustParseAddr("fd00::1"), "net1", "t/fast"}, ""},
		"two, orders on the first":         {two, addresses("10.1.0.1"), "", Plane{Address: netip.MustParseAddr("10.1.0.1")}, ""},
		"two, nothing known":               {two, nil, "", Plane{}, "is not known"},
		"two, an earlier address":          {two, addresses("192.168.7.77"), "", Plane{}, "is not known"},
		"a client on the network":          {two, nil, "t/fast", Plane{netip.MustParseAddr("192.168.7.1"), "net1", "t/fast"}, ""},
		"a client that is not on it":       {"", nil, "t/fast", Plane{}, "is not known"},
		"no JSON":                          {"<xml>", nil, "", Plane{}, "not a list of interfaces"},
		"no address":                       {`[{"interface":"eth0","ips":["here"]}]`, nil, "", Plane{}, "not a list of interfaces"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("g-s0-0")
			pod.Status = corev1.PodStatus{PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}}}
			if c.annotation != "" {
				pod.Annotations = map[string]string{networkStatus: c.annotation}
			}
			got, err := PlaneOf(&pod, c.given, c.network)
			if got != c.want || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	pod := podOf("g-s0-0")
	if _, err := PlaneOf(&pod, nil, ""); err == nil || !strings.Contains(err.Error(), "no address yet") {
		t.Errorf("%v", err)
	}
}
