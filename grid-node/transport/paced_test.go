package transport

import (
	"sync/atomic"
	"testing"
	"time"
)

// pacedHandler counts ticks, and rests for as long as it is told to.
type pacedHandler struct {
	ticks atomic.Int64
	rest  time.Duration // of the loop
}

func (h *pacedHandler) OnOpen(*Conn)                        {}
func (h *pacedHandler) OnFrames(*Conn, []byte) (int, error) { return 0, nil }
func (h *pacedHandler) OnClose(*Conn, error)                {}
func (h *pacedHandler) OnWakeEnd()                          {}
func (h *pacedHandler) OnTick()                             { h.ticks.Add(1) }
func (h *pacedHandler) Rest() time.Duration                 { return h.rest }

// A handler that rests gets no tick, and as soon as it has something to do it does.
func TestTicksStayAwayWhileTheHandlerRests(t *testing.T) {
	for _, kind := range []Kind{KindEpoll, KindNet} {
		t.Run(string(kind), func(t *testing.T) {
			h := &pacedHandler{rest: time.Hour}
			loop, err := New(kind, Config{Tick: time.Millisecond}, h)
			if err != nil {
				t.Skip(err)
			}
			done := make(chan error, 1)
			go func() { done <- loop.Run() }()
			for range 5 {
				time.Sleep(10 * time.Millisecond)
				woken := make(chan struct{})
				loop.Post(func() { close(woken) })
				<-woken
			}
			if n := h.ticks.Load(); n != 1 {
				t.Errorf("%d ticks of a handler that rests, want the first alone", n)
			}
			loop.Post(func() { h.rest = 0 })
			for h.ticks.Load() < 10 {
				time.Sleep(time.Millisecond)
			}
			loop.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
