package load

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
)

func TestSteadyIsEvenAndExact(t *testing.T) {
	for _, rate := range []int{1, 3, 7, 100, 250, 3000, 6000, 999_983, MaxRate} {
		s, err := NewSteady(rate, 0)
		if err != nil {
			t.Fatal(err)
		}
		ideal := 1e9 / float64(rate)
		for i := int64(0); i < 2000; i++ {
			if d := float64(s.Offset(i)) - float64(i)*ideal; d > 0.01 || d < -1.01 {
				t.Fatalf("rate %d: order %d is %v ns off", rate, i, d)
			}
		}
		const hours = 24
		if n := int64(rate) * 3600 * hours; s.Offset(n) != int64(hours*time.Hour) {
			t.Errorf("rate %d: drifts by %d ns in %d h", rate, s.Offset(n)-int64(hours*time.Hour), hours)
		}
	}
}

func TestOrdersIsTheInverseOfOffset(t *testing.T) {
	for _, rate := range []int{1, 3, 7, 250, 6000, 999_983} {
		for _, phase := range []time.Duration{0, 1, time.Second / time.Duration(2*rate)} {
			s, err := NewSteady(rate, phase)
			if err != nil {
				t.Fatal(err)
			}
			for n := int64(0); n < 500; n++ {
				at := s.Offset(n)
				if got := s.Orders(at); got != n {
					t.Fatalf("rate %d phase %v: Orders(Offset(%d)) = %d", rate, phase, n, got)
				}
				if got := s.Orders(at + 1); got != n+1 {
					t.Fatalf("rate %d phase %v: Orders(Offset(%d)+1) = %d", rate, phase, n, got)
				}
			}
		}
	}
}

func TestNewSteadyRefuses(t *testing.T) {
	for _, c := range []struct {
		rate  int
		phase time.Duration
	}{{0, 0}, {-1, 0}, {MaxRate + 1, 0}, {100, -1}, {100, 11 * time.Millisecond}} {
		if _, err := NewSteady(c.rate, c.phase); err == nil {
			t.Errorf("%+v accepted", c)
		}
	}
}

// pace runs a pacer on a thread of its own and returns creation times.
func pace(t *testing.T, s Schedule, start, n int64, stop *atomic.Bool, during func(i int64)) []int64 {
	t.Helper()
	created := make([]int64, 0, n)
	done := make(chan error)
	go func() {
		if err := clock.Thread(); err != nil {
			done <- err
			return
		}
		Pace(s, start, n, stop, func(i, t1 int64) {
			if int(i) != len(created) {
				t.Errorf("order %d created as number %d", i, len(created))
			}
			created = append(created, t1)
			during(i)
		})
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return created
}

// The error itself is reported, not judged: it depends on the machine.
func TestPacingError(t *testing.T) {
	s, err := NewSteady(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := clock.Now() + int64(20*time.Millisecond)
	created := pace(t, s, start, 500, new(atomic.Bool), func(int64) {})
	if len(created) != 500 {
		t.Fatalf("created %d of 500", len(created))
	}
	lag := make([]int64, len(created))
	for i, t1 := range created {
		if lag[i] = t1 - (start + s.Offset(int64(i))); lag[i] < 0 {
			t.Fatalf("order %d created %d ns early", i, -lag[i])
		}
	}
	slices.Sort(lag)
	t.Logf("pacing error at 1,000/s: p50 %d us, p99 %d us, max %d us", lag[250]/1000, lag[495]/1000, lag[499]/1000)
}

func TestStallSkipsNothing(t *testing.T) {
	s, err := NewSteady(2000, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := clock.Now() + int64(5*time.Millisecond)
	const stallAt, stall = 20, 30 * time.Millisecond
	created := pace(t, s, start, 200, new(atomic.Bool), func(i int64) {
		if i == stallAt {
			clock.SleepUntil(clock.Now() + int64(stall))
		}
	})
	if len(created) != 200 {
		t.Fatalf("created %d of 200", len(created))
	}
	// The stall covers 60 intended times; those orders exist and are late by
	// what is left of the stall when they fell due.
	for i := int64(stallAt + 1); i < stallAt+50; i++ {
		due := start + s.Offset(i)
		least := created[stallAt] + int64(stall) - due
		if got := created[i] - due; got < least {
			t.Fatalf("order %d is %d ns late, at least %d expected: its intended time moved", i, got, least)
		}
	}
}

func TestStopEndsALongWait(t *testing.T) {
	s, err := NewSteady(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	time.AfterFunc(20*time.Millisecond, func() { stop.Store(true) })
	if got := pace(t, s, clock.Now()+int64(time.Hour), 5, &stop, func(int64) {}); len(got) != 0 {
		t.Errorf("created %d orders after stop", len(got))
	}
}

func BenchmarkOffset(b *testing.B) {
	s, err := NewSteady(6000, 0)
	if err != nil {
		b.Fatal(err)
	}
	var i, sum int64
	for b.Loop() {
		sum += s.Offset(i)
		i++
	}
	_ = sum
}
