// Package step prints what a long command is doing: one line when a step
// starts to matter, one when it is done, each with the time it took, so that a
// person watching knows whether to wait.
package step

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Printer writes the lines of one command. It is safe for concurrent use.
type Printer struct {
	mu    sync.Mutex
	out   io.Writer
	begin time.Time
	now   func() time.Time
}

// New returns a Printer whose clock starts now.
func New(out io.Writer) *Printer { return newAt(out, time.Now) }

func newAt(out io.Writer, now func() time.Time) *Printer {
	return &Printer{out: out, begin: now(), now: now}
}

// Say prints one line behind the time since the command started.
func (p *Printer) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", p.now().Sub(p.begin).Seconds(), fmt.Sprintf(format, args...))
}

// Run does one step and prints its name, its result and how long it took.
func (p *Printer) Run(name string, do func() error) error {
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
