//go:build !linux

package proc

import (
	"context"
	"net"
	"strconv"
)

// hold finds a port that is free now; it is not reserved.
func hold(host string, port int) (addr string, release func(), err error) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return "", nil, err
	}
	return ln.Addr().String(), func() {}, ln.Close()
}
