package clock

import (
	"runtime"
	"testing"
	"time"
)

func TestSleepUntilIsNeverEarly(t *testing.T) {
	done := make(chan [2]int64)
	go func() {
		if err := Thread(); err != nil {
			t.Error(err)
		}
		for i := range int64(50) {
			want := Now() + i*20_000
			SleepUntil(want)
			done <- [2]int64{want, Now()}
		}
		close(done)
	}()
	for d := range done {
		if d[1] < d[0] {
			t.Fatalf("woke %d ns early", d[0]-d[1])
		}
	}
}

// A sleeping thread keeps its processor; a stop-the-world must still end.
func TestSleepDoesNotHoldUpTheCollector(t *testing.T) {
	finished := make(chan struct{})
	go func() {
		if err := Thread(); err != nil {
			t.Error(err)
		}
		SleepUntil(Now() + int64(300*time.Millisecond))
		close(finished)
	}()
	rounds := 0
	for {
		select {
		case <-finished:
			if rounds == 0 {
				t.Error("no collection ended while the thread slept")
			}
			t.Logf("%d collections during the sleep", rounds)
			return
		default:
			runtime.GC()
			rounds++
		}
	}
}

func TestWallAndAtAgree(t *testing.T) {
	now := Now()
	back := At(Wall(now))
	if d := back - now; d < -int64(time.Second) || d > int64(time.Second) {
		t.Errorf("round trip moved by %d ns", d)
	}
}

func TestNowAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, func() { _ = Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		_ = Now()
	}
}
