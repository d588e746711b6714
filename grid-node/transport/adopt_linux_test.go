package transport

import (
	"net"
	"strings"
	"testing"
)

// A socket that cannot be taken from its connection is refused, and closed.
func TestAdoptNoSocket(t *testing.T) {
	l, _ := newLoop(t, KindEpoll, Config{}, &echo{})
	near, far := net.Pipe()
	if err := l.Adopt(near, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "*net.TCPConn") {
		t.Errorf("error %v", err)
	}
	awaitEnd(t, far)
}
