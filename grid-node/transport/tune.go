package transport

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// TuneScheduler prepares the Go runtime for n KindEpoll loops: each keeps its P
// while it sleeps, so at least two more are needed for everything else. It never
// lowers GOMAXPROCS.
func TuneScheduler(n int) error {
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		return fmt.Errorf("GODEBUG=%s: asyncpreemptoff=1 would let a garbage collection wait for the network; unset it", os.Getenv("GODEBUG"))
	}
	if want := n + 2; runtime.GOMAXPROCS(0) < want {
		runtime.GOMAXPROCS(want)
	}
	return nil
}
