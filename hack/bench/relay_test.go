package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/floor"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// relays are all floors that this machine can run.
func relays(t *testing.T) []system.System {
	t.Helper()
	all := []system.System{floor.Go(os.Args[0])}
	for _, s := range floor.C(t.TempDir()) {
		if m := s.Missing(); m != "" {
			t.Logf("%s is not tested: %s", s.Name(), m)
			continue
		}
		all = append(all, s)
	}
	return all
}

func startRelay(t *testing.T, s system.System, topology system.Topology) *system.Running {
	t.Helper()
	run, err := s.Start(t.Context(), system.Loopback{}, topology)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Stop(); err != nil {
			t.Error(err)
		}
	})
	return run
}

// Every message is answered once, in order, whatever pieces it arrives in.
func TestRelayAnswersEveryMessageInOrder(t *testing.T) {
	for _, s := range relays(t) {
		for _, topology := range []system.Topology{
			{Copies: 1, Request: 305, Reply: 8}, {Copies: 2, Request: 305, Reply: 8},
			{Copies: 2, Request: 4096, Reply: 8}, {Copies: 2, Reads: true, Request: 40, Reply: 305}} {
			run := startRelay(t, s, topology)
			if want := 1; topology.Copies == 2 && !topology.Reads && len(run.PIDs) != 2 || (topology.Copies == 1 || topology.Reads) && len(run.PIDs) != want {
				t.Fatalf("%s %+v: %d processes", s.Name(), topology, len(run.PIDs))
			}
			var clients sync.WaitGroup
			for client := range 5 {
				clients.Go(func() { converse(t, s.Name(), run.Addresses[0], topology, client) })
			}
			clients.Wait()
		}
	}
}

// converse sends messages in pieces that fit no boundary, and reads the answers.
func converse(t *testing.T, name, address string, topology system.Topology, client int) {
	const messages = 400
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	go func() {
		all := make([]byte, messages*topology.Request)
		for piece := 1 + 100*client; len(all) > 0; piece = piece*2%70_001 + 1 {
			n := min(piece, len(all))
			if _, err := c.Write(all[:n]); err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			all = all[n:]
		}
	}()
	answer := make([]byte, topology.Reply)
	for want := uint64(1); want <= messages; want++ {
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Errorf("%s %+v: answer %d: %v", name, topology, want, err)
			return
		}
		if got := binary.LittleEndian.Uint64(answer); got != want {
			t.Errorf("%s %+v: answer %d has number %d", name, topology, want, got)
			return
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Error(err)
	}
	if n, err := c.Read(answer); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s %+v: %d bytes more than answers, %v", name, topology, n, err)
	}
}

// awaitStopped waits until every thread of a process hangs: the signal only
// asks for it.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	for range 2000 {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		running := err != nil || len(stats) == 0
		for _, name := range stats {
			stat, err := os.ReadFile(name)
			_, after, _ := strings.Cut(string(stat), ") ")
			running = running || err != nil || !strings.HasPrefix(after, "T")
		}
		if !running {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("process %d does not stop", pid)
}

// No answer comes before the second process has the message.
func TestRelayWaitsForTheSecondProcess(t *testing.T) {
	for _, s := range relays(t) {
		run := startRelay(t, s, system.Topology{Copies: 2, Request: 305, Reply: 8})
		c, err := net.Dial("tcp", run.Addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ask := func() {
			if _, err := c.Write(make([]byte, 305)); err != nil {
				t.Fatal(err)
			}
		}
		answer := make([]byte, 8)
		ask()
		if _, err := io.ReadFull(c, answer); err != nil { // now all connections are made
			t.Fatal(err)
		}
		backup := run.PIDs[1]
		if err := syscall.Kill(backup, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		awaitStopped(t, backup)
		ask()
		if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(answer); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s answered (%d bytes, %v) while the second process stood still", s.Name(), n, err)
		}
		if err := syscall.Kill(backup, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Errorf("%s: %v", s.Name(), err)
		}
	}
}
