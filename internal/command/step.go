package command

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Steps prints what a long command is doing: a line when a step begins to matter and one when it is done, each with its
// time, so that a user who watches knows whether to wait. It is safe for concurrent use.
type Steps struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
	now   func() time.Time
}

// NewSteps returns Steps whose clock starts now.
func NewSteps(out io.Writer) *Steps { return newAt(out, time.Now) }

func newAt(out io.Writer, now func() time.Time) *Steps {
	return &Steps{out: out, begin: now(), now: now}
}

// Say prints one line behind the time since the command started.
func (p *Steps) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", p.now().Sub(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// Run does one step and prints its name, its result and how long it took.
func (p *Steps) Run(name string, do func() error) error {
	start := p.now()
	if err := do(); err != nil {
		p.Say("%s: failed after %s", name, round(p.now().Sub(start)))
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Say("%s (%s)", name, round(p.now().Sub(start)))
	return nil
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
