package metrics

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestParseInterfaces(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 6172360   31190    0    0    0     0          0         0  6172361   31191    0    0    0     0       0          0
fabric0:1893 21 0 0 0 0 0 0 4711 22 0 0 0 0 0 0
  cut: 1 2 3
`
	want := []interfaceBytes{{"lo", 6172360, 6172361, 31190, 31191}, {"fabric0", 1893, 4711, 21, 22}}
	if got := parseInterfaces(text); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := parseInterfaces("nonsense"); got != nil {
		t.Errorf("%+v", got)
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "veth%d: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n", i)
	}
	if got := parseInterfaces(many.String()); len(got) != maxInterfaces {
		t.Errorf("%d interfaces", len(got))
	}
}

func TestReadInterfaces(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc/net/dev: run it on Linux")
	}
	if !slices.ContainsFunc(readInterfaces(), func(i interfaceBytes) bool { return i.name == "lo" }) {
		t.Errorf("no loopback: %+v", readInterfaces())
	}
}
