package nfqueue

import (
	"fmt"
	"os"
	"strings"
)

// Statistics are the kernel's own counts of a queue.
type Statistics struct {
	Waiting int64 // packets without a verdict
	Queued  int64 // packets handed over since the queue was bound
	// Overflow are packets dropped because too many waited or the process did
	// not read fast enough.
	Overflow int64
}

// ReadStatistics finds queue num in the network namespace of process pid.
func ReadStatistics(pid int, num uint16) (Statistics, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netfilter/nfnetlink_queue", pid))
	if err != nil {
		return Statistics{}, err
	}
	return parseStatistics(string(text), num)
}

func parseStatistics(text string, num uint16) (Statistics, error) {
	for line := range strings.Lines(text) {
		var number, port, mode, length, dropped, userDropped int64
		var s Statistics
		_, err := fmt.Sscan(line, &number, &port, &s.Waiting, &mode, &length, &dropped, &userDropped, &s.Queued)
		if err == nil && number == int64(num) {
			s.Overflow = dropped + userDropped
			return s, nil
		}
	}
	return Statistics{}, fmt.Errorf("netfilter queue %d is not bound", num)
}
