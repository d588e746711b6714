//go:build !linux

package transport

import (
	"fmt"
	"runtime"
)

func newEpollLoop(Config, Handler) (Loop, error) {
	return nil, fmt.Errorf("transport kind %q needs Linux, this is %s: use %q", KindEpoll, runtime.GOOS, KindNet)
}
