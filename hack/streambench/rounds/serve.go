package rounds

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Target is a server of the process that calls Serve.
type Target interface {
	Listen() (addr string, err error)
	// Publish is called with the topics of one millisecond.
	Publish(topics []int)
	// Finish waits until everything is published, and returns how many messages were left out.
	Finish() (lost int)
}

// Serve serves one round: it prints its address, publishes from a line of its input on, and prints what that cost.
func Serve(t Target, s *Shape) error {
	addr, err := t.Listen()
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	before := resident()
	fmt.Println(addr)
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	time.Sleep(time.Second)
	debug.FreeOSMemory() // what is garbage of connecting is not held
	kib := float64(resident()-before) / 1024 / float64(s.Clients)
	cpu := used()
	published, due, perTick := 0, 0.0, s.Published(s.Rate)/1000
	start := time.Now()
	for tick := 0; time.Duration(tick)*time.Millisecond < s.Lasts; tick++ {
		time.Sleep(time.Until(start.Add(time.Duration(tick) * time.Millisecond)))
		var list []int
		for due += perTick; due >= 1; due-- {
			list = append(list, published*7919%s.Topics) // a prime: all topics in turn
			published++
		}
		if len(list) > 0 {
			t.Publish(list)
		}
	}
	time.Sleep(s.Flush + 200*time.Millisecond)
	lost := t.Finish()
	fmt.Println(published, lost, used()-cpu, kib)
	_, _ = in.ReadString('\n') // until the clients are closed
	return nil
}

// used is the CPU of this process in microseconds.
func used() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e3
}

// resident is the memory of this process in bytes, without pages of files: its code is not of its clients.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	var size, pages, shared int
	if _, err := fmt.Fscan(strings.NewReader(string(text)), &size, &pages, &shared); err != nil {
		panic(err)
	}
	return (pages - shared) * os.Getpagesize()
}

// Now is the machine's monotonic clock, the same for all processes.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
