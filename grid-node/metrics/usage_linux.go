package metrics

import "golang.org/x/sys/unix"

func readUsage() (processUsage, bool) {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return processUsage{}, false
	}
	return processUsage{minorFaults: uint64(ru.Minflt), majorFaults: uint64(ru.Majflt), voluntary: uint64(ru.Nvcsw), involuntary: uint64(ru.Nivcsw)}, true
}
