package load

import (
	"sync"
	"testing"
	"time"
)

// A loader that is kept from running for longer than the moment it waits goes on: nothing else may wake it, when every row
// on its way is settled.
func TestWaitIsWokenAfterAPause(t *testing.T) {
	l := &Loader{}
	l.room = sync.NewCond(&l.mu)
	l.mu.Lock()
	done := make(chan bool)
	go func() { done <- l.wait() }()
	time.Sleep(50 * time.Millisecond) // the loader's moment passes before it gets the lock
	l.mu.Unlock()
	select {
	case on := <-done:
		if !on {
			t.Error("a loader without an error ended")
		}
	case <-time.After(time.Minute):
		t.Fatal("the loader waits for good")
	}
}
