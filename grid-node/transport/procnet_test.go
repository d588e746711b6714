package transport

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// tcpLine is a socket of /proc/net/tcp.
type tcpLine struct{ localPort, txQueue int }

// procNetTCP is empty where there is no such file.
func procNetTCP(t testing.TB) (out []tcpLine) {
	t.Helper()
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(b), "\n")[1:] {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		_, port, _ := strings.Cut(f[1], ":")
		tx, _, _ := strings.Cut(f[4], ":")
		p, err1 := strconv.ParseInt(port, 16, 32)
		q, err2 := strconv.ParseInt(tx, 16, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("/proc/net/tcp: %q", line)
		}
		out = append(out, tcpLine{localPort: int(p), txQueue: int(q)})
	}
	return out
}
