package main

import (
	"bufio"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// target is what a child measures. Its publish is called with the topics of one millisecond.
type target interface {
	listen() (addr string, err error)
	publish(topics []int)
	finish() (lost int) // waits until everything is published
}

// child serves one round: it prints its address, publishes from a line of its input on, and prints what that cost.
func child(kind string, s *shape) error {
	var t target
	if kind == "floor" {
		t = newFloor(s)
	} else {
		var err error
		if t, err = newServer(s); err != nil {
			return err
		}
	}
	addr, err := t.listen()
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
	time.Sleep(200 * time.Millisecond)
	debug.FreeOSMemory() // what is garbage of connecting is not held
	kib := float64(resident()-before) / 1024 / float64(s.clients)
	cpu := used()
	published, due, perTick := 0, 0.0, s.published(s.rate)/1000
	start := time.Now()
	for tick := 0; time.Duration(tick)*time.Millisecond < s.lasts; tick++ {
		time.Sleep(time.Until(start.Add(time.Duration(tick) * time.Millisecond)))
		var list []int
		for due += perTick; due >= 1; due-- {
			list = append(list, published*7919%s.topics) // a prime: all topics in turn
			published++
		}
		if len(list) > 0 {
			t.publish(list)
		}
	}
	time.Sleep(s.flush + 200*time.Millisecond)
	lost := t.finish()
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

// resident is the memory of this process in bytes.
func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	var size, pages int
	if _, err := fmt.Fscan(strings.NewReader(string(text)), &size, &pages); err != nil {
		panic(err)
	}
	return pages * os.Getpagesize()
}

// streams is the server.
type streams struct {
	s      *server.Server
	shape  *shape
	seq    uint64
	posted atomic.Int64
	lost   uint64
}

func newServer(s *shape) (target, error) {
	all, err := topics.ParsePattern(">")
	if err != nil {
		return nil, err
	}
	srv, err := server.New(server.Config{
		Hub: fanout.Config{Partitions: 1, RingBytes: 16 << 20},
		Admit: func(*http.Request, *x509.Certificate) (*server.Grant, error) {
			return &server.Grant{Topics: []topics.Pattern{all}}, nil
		},
		MaxOfOne: 10_000, MaxUnknown: 10_000,
	})
	return &streams{s: srv, shape: s}, err
}

func (t *streams) listen() (string, error) {
	addr, err := t.s.Listen("127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		if err := t.s.Run(); err != nil {
			panic(err)
		}
	}()
	// The ring's pages belong to the server, not to its clients.
	done := make(chan struct{})
	t.s.Post(func(h *fanout.Hub) {
		for range 16 << 20 / 1024 * 2 {
			t.send(h, "unwanted", make([]byte, 1000))
		}
		close(done)
	})
	<-done
	return addr.String(), nil
}

func (t *streams) send(h *fanout.Hub, topic string, payload []byte) {
	t.seq++
	if err := h.Publish(&fanout.Message{At: fanout.Position{Seq: t.seq}, Topic: []byte(topic), Payload: payload}); err != nil {
		panic(err)
	}
}

func (t *streams) publish(list []int) {
	at := now()
	t.posted.Add(1)
	t.s.Post(func(h *fanout.Hub) {
		payload := make([]byte, t.shape.payload)
		binary.BigEndian.PutUint64(payload, uint64(at))
		for _, n := range list {
			t.send(h, topicOf(n), payload)
		}
		t.posted.Add(-1)
	})
}

func (t *streams) finish() int {
	for t.posted.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	lost := make(chan uint64)
	t.s.Post(func(h *fanout.Hub) { lost <- h.Stats().Dropped })
	return int(<-lost)
}
