package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// progress shows the progress of a run: a bar on a terminal, a line per step elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	plan     scenario.Plan

	mu      sync.Mutex
	step    scenario.Step
	first   time.Time // when the first step began
	begun   time.Time // and this one
	left    time.Duration
	drawn   bool
	done    chan struct{}
	stopped sync.WaitGroup
}

func newProgress(w io.Writer, plan scenario.Plan) *progress {
	return &progress{w: w, terminal: isTerminal(w), plan: plan}
}

// Begin implements runner.Progress.
func (p *progress) Begin(s scenario.Step, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.begun, p.left = s, time.Now(), left
	if p.first.IsZero() {
		p.first = p.begun
	}
	if !p.terminal {
		fmt.Fprintf(p.w, "%s: step %d of %d: %s; %s left\n", p.plan.Scenario, s.ID+1, p.steps(), stepText(s), round(left))
		return
	}
	if p.done == nil {
		p.done = make(chan struct{})
		p.stopped.Go(p.draw)
	}
}

// steps in total, of a search at most.
func (p *progress) steps() int {
	if p.plan.Search != nil {
		return p.plan.Search.MaxSteps
	}
	return len(p.plan.Steps)
}

// End implements runner.Progress.
func (p *progress) End(s scenario.Step, probes []report.ProbeStep) {
	var c2e report.Histogram
	var acked, violations int64
	for _, ps := range probes {
		c2e.Merge(ps.CreateToEnd)
		acked += ps.Acked
		violations += ps.Violations()
	}
	text := fmt.Sprintf("%s: %d acknowledged, create-to-end mean %.0f us, p99 %.0f us", stepText(s), acked, c2e.Mean()/1e3, float64(c2e.Percentile(99))/1e3)
	if violations > 0 {
		text += fmt.Sprintf(", %d VIOLATIONS", violations)
	}
	p.Say(text)
}

// Say implements runner.Progress.
func (p *progress) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.w, "%s: %s\n", p.plan.Scenario, text)
}

// close removes the bar.
func (p *progress) close() {
	p.mu.Lock()
	if p.done != nil {
		close(p.done)
		p.done = nil
	}
	p.mu.Unlock()
	p.stopped.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// draw repaints the bar twice a second: seldom enough not to affect the measurement.
func (p *progress) draw() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			p.mu.Lock()
			p.wipe()
			fmt.Fprint(p.w, p.bar(time.Now()))
			p.drawn = true
			p.mu.Unlock()
		}
	}
}

const barWidth = 30

func (p *progress) bar(now time.Time) string {
	in := now.Sub(p.begun)
	share := min(1, in.Seconds()/(p.plan.WarmupTime()+p.plan.MeasureTime()).Seconds())
	full := int((float64(p.step.ID) + share) / float64(p.steps()) * barWidth)
	part := "measuring"
	if in < p.plan.WarmupTime() {
		part = "warm-up"
	}
	return fmt.Sprintf("[%s%s] %d/%d %s, %s, %s gone, %s left", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full),
		p.step.ID+1, p.steps(), stepText(p.step), part, round(now.Sub(p.first)), round(max(0, p.left-in)))
}

func stepText(s scenario.Step) string {
	text := fmt.Sprintf("%d orders/s", s.TotalRate())
	if s.Pairs > 0 {
		text = fmt.Sprintf("%d pairs, %s", s.Pairs, text)
	}
	if label := s.Label(); label != "" {
		text += " " + label
	}
	if s.Run > 1 {
		text += fmt.Sprintf(", run %d", s.Run)
	}
	return text
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }
