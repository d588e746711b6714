package scale

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage of a process so far.
type usage struct {
	CPU time.Duration // user and system
	RSS int64         // bytes now
}

// clockTick of /proc/PID/stat: USER_HZ, 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// children gives the usage of every child of this process by program name, and of this process as "scale".
func children() (map[string]usage, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	out := map[string]usage{}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, parent, name, u, err := parseStat(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case pid == os.Getpid():
			out["scale"] = u
		case parent == os.Getpid():
			sum := out[name]
			sum.CPU, sum.RSS = sum.CPU+u.CPU, sum.RSS+u.RSS
			out[name] = sum
		}
	}
	return out, nil
}

// parseStat reads a line of /proc/PID/stat. The name stands in brackets and may have any character in it; the kernel keeps
// its first 15 bytes.
func parseStat(line []byte) (pid, parent int, name string, u usage, err error) {
	open, shut := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || shut < open {
		return 0, 0, "", u, fmt.Errorf("%q is no line of a stat file", line)
	}
	name = string(line[open+1 : shut])
	fields := strings.Fields(string(line[shut+1:]))
	if len(fields) < 22 {
		return 0, 0, "", u, fmt.Errorf("%q has %d fields after the name, want 22 or more", line, len(fields))
	}
	var numbers [5]int64
	for i, text := range []string{strings.TrimSpace(string(line[:open])), fields[1], fields[11], fields[12], fields[21]} {
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, 0, "", u, err
		}
	}
	u = usage{CPU: time.Duration(numbers[2]+numbers[3]) * clockTick, RSS: numbers[4] * int64(os.Getpagesize())}
	return int(numbers[0]), int(numbers[1]), name, u, nil
}
