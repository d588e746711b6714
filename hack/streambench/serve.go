package main

import (
	"crypto/x509"
	"encoding/binary"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/hack/streambench/rounds"
)

// streams is the server.
type streams struct {
	s      *server.Server
	shape  *rounds.Shape
	seq    uint64
	posted atomic.Int64
	lost   uint64
}

func newServer(s *rounds.Shape) (rounds.Target, error) {
	all, err := topics.ParsePattern(">")
	if err != nil {
		return nil, err
	}
	grant := &server.Grant{Topics: []topics.Pattern{all}} // of one entry of a file of clients
	srv, err := server.New(server.Config{
		Hub: fanout.Config{Partitions: 1, RingBytes: 16 << 20},
		Admit: func(*http.Request, *x509.Certificate) (*server.Grant, error) {
			return grant, nil
		},
		MaxOfOne: 10_000, MaxUnknown: 10_000,
	})
	return &streams{s: srv, shape: s}, err
}

func (t *streams) Listen() (string, error) {
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

func (t *streams) Publish(list []int) {
	at := rounds.Now()
	t.posted.Add(1)
	t.s.Post(func(h *fanout.Hub) {
		payload := make([]byte, t.shape.Payload)
		binary.BigEndian.PutUint64(payload, uint64(at))
		for _, n := range list {
			t.send(h, rounds.TopicOf(n), payload)
		}
		t.posted.Add(-1)
	})
}

func (t *streams) Finish() int {
	for t.posted.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	lost := make(chan uint64)
	t.s.Post(func(h *fanout.Hub) { lost <- h.Stats().Dropped })
	return int(<-lost)
}
