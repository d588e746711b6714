// Command memStress holds memory until it is signalled, as Chaos Mesh's daemon
// asks for it:
//
//	memStress --workers N --size SIZE
//
// SIZE, per worker, is a number with KB, MB, GB (of 1024) or % of the machine's
// memory. It takes the place of Chaos Mesh's own helper, which is published as a
// binary only; other flags of that one are refused.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	workers := flag.Int("workers", 1, "how many times --size is held")
	size := flag.String("size", "0", "memory of each: 64MB, 1GB, 25%")
	flag.Parse()
	if err := run(*workers, *size); err != nil {
		fmt.Fprintln(os.Stderr, "memStress:", err)
		os.Exit(1)
	}
}

func run(workers int, size string) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return err
	}
	bytes, err := parse(size, uint64(info.Totalram)*uint64(info.Unit))
	if err != nil || workers < 0 || flag.NArg() > 0 {
		return fmt.Errorf("%d workers of %q, arguments %q: %v", workers, size, flag.Args(), err)
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	for range workers {
		if bytes == 0 {
			break
		}
		if _, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
			return fmt.Errorf("%d bytes: %w", bytes, err)
		}
	}
	<-end
	return nil
}

// parse reads a size; total is what a percentage is of.
func parse(size string, total uint64) (uint64, error) {
	number, unit := strings.ToUpper(strings.TrimSpace(size)), 1.0
	for suffix, bytes := range map[string]float64{"%": float64(total) / 100, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30} {
		if rest, found := strings.CutSuffix(number, suffix); found {
			number, unit = rest, bytes
			break
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if bytes := n * unit; err == nil && bytes >= 0 && bytes <= float64(total) {
		return uint64(bytes), nil
	}
	return 0, fmt.Errorf("size %q is not a number with KB, MB, GB or %%, up to the %d bytes of this machine", size, total)
}
