package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/internal/race"
)

// The child of TestKilledWriterGoesOn: it writes the log until it is killed at the n-th step, or to the end.
const (
	childURL  = "ORDERGRID_ARCHIVE_CHILD"
	childStep = "ORDERGRID_ARCHIVE_STEP"
	childLog  = 200
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		os.Exit(child(url))
	}
	code := m.Run()
	os.Exit(code)
}

func child(url string) int {
	n, err := strconv.Atoi(os.Getenv(childStep))
	if err != nil {
		panic(err)
	}
	step := make(chan int, 1)
	step <- 0
	fault = func(string) { // merging is a goroutine of its own
		now := <-step + 1
		step <- now
		if now == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // it does not return
			select {}
		}
	}
	s, err := OpenURL(url, "")
	if err != nil {
		panic(err)
	}
	t := NewTarget(s, Options{Grid: grid, SegmentEntries: 40})
	l := childEntries()
	w, err := t.Open(context.Background(), part)
	if err != nil {
		panic(err)
	}
	for from := w.Position().Seq + 1; from <= childLog; from += 10 {
		if err := w.Write(context.Background(), l.batch(from, min(from+9, childLog))); err != nil {
			panic(err)
		}
		w.(*writer).settle()
	}
	fmt.Println("steps", <-step)
	return 0
}

// childEntries is the same log in every process.
func childEntries() *testLog { return logOf(&testing.B{}, childLog) }

// A writer that is killed between any two steps: the next one goes on, and the archive has every entry once.
func TestKilledWriterGoesOn(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l := childEntries()
			steps := runChild(t, s(t), 1<<30)
			if steps < 50 {
				t.Fatalf("the writer has %d steps", steps)
			}
			stride := 1
			if name != "directory" {
				stride = 7 // each is a process and some fifty requests
			}
			if race.Enabled { // and takes ten times as long
				stride *= 5
			}
			for n := 1; n < steps; n += stride {
				s := s(t)
				runChild(t, s, n)
				if pieces, err := list(t.Context(), s, grid+"/"); err != nil {
					t.Fatal(err)
				} else if len(pieces) > 0 {
					if r := verifyAll(t, s); !r.Intact() {
						t.Fatalf("killed at step %d: %v", n, r.Problems)
					}
				}
				if n%2 == 0 { // once more, while it goes on
					runChild(t, s, max(1, n/2))
				}
				runChild(t, s, 1<<30)
				if r := holds(t, s, l, 1, childLog); r.Segments < 4 || r.Leftovers > 0 {
					t.Fatalf("killed at step %d: %d segments, %d merged batches are left", n, r.Segments, r.Leftovers)
				}
			}
		})
	}
}

// runChild returns how many steps it made, if it was not killed.
func runChild(t *testing.T, s Store, step int) int {
	t.Helper()
	url := childURLOf(t, s)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childStep+"="+strconv.Itoa(step))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return 0
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, text, _ := strings.Cut(string(out), "steps ")
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return n
}

// Two writers that open and write against each other: whatever is accepted is one log.
func TestTwoWritersMakeOneLog(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l, s := logOf(t, 600), s(t)
			target := NewTarget(s, Options{Grid: grid, SegmentEntries: 50})
			done := make(chan error, 2)
			for i := range 2 {
				go func() { done <- contend(t.Context(), target, l, uint64(5+3*i)) }()
			}
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			holds(t, s, l, 1, 600)
		})
	}
}

// contend writes the log to its end, however often it is fenced.
func contend(ctx context.Context, target *Target, l *testLog, n uint64) error {
	for opened := 0; opened < 1000; opened++ {
		w, err := target.Open(ctx, part)
		if errors.Is(err, sink.ErrFenced) || errors.Is(err, errMoved) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for seq := w.Position().Seq; ; seq = w.Position().Seq {
			if seq == 600 {
				return w.Close()
			}
			if err := w.Write(ctx, l.batch(seq+1, min(seq+n, 600))); errors.Is(err, sink.ErrFenced) || errors.Is(err, os.ErrNotExist) {
				break
			} else if err != nil {
				return err
			}
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return errors.New("it was fenced 1000 times")
}
