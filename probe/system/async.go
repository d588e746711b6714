package system

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// minSpeedUp is how much of the workers, or of the cores where those are fewer, a speed-up has to be.
	minSpeedUp = 0.85
	// plateau is how much longer than on all cores more workers may take.
	plateau = 1.1
	// asyncBound is of one execution.
	asyncBound = time.Minute
)

// workersOf returns the parameters of a mode, and how long one worker is to take for all executions.
func workersOf(s published.Scenario, mode scenario.Mode) (p published.Workers, lasts time.Duration, err error) {
	exact, scaled, err := s.Workers()
	switch mode {
	case scenario.Exact:
		return exact, 30 * time.Second, err
	case scenario.Quick:
		return published.Workers{Task: scaled.Task, Executions: scaled.Executions, Workers: []int{1, 2, 3, 50}}, time.Second, err
	}
	return scaled, 3 * time.Second, err
}

// workers take executions of the function primes from one queue: slices of a Map, so many at once.
type workers struct {
	*objects
	p      published.Workers
	rounds uint32 // how often an execution counts the primes up to p.Task
	primes uint64 // that there are, found in another way
}

// newWorkers starts a grid that has the function.
func (o *Options) newWorkers(ctx context.Context, p published.Workers) (*workers, error) {
	file, err := filepath.Abs(filepath.Join(o.Dir, "primes.wasm"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, examples.Primes, 0o600); err != nil {
		return nil, err
	}
	k, err := o.newObjectsWith(ctx, 1000, []string{"--function-compute", fmt.Sprintf("primes=%s:sha256=%x", file, sha256.Sum256(examples.Primes))}, "unused")
	if err != nil {
		return nil, err
	}
	return &workers{objects: k, p: p, rounds: 1, primes: sieve(p.Task)}, nil
}

// sieve counts the primes up to n by crossing out multiples.
func sieve(n int) (primes uint64) {
	crossed := make([]bool, n+1)
	for i := 2; i <= n; i++ {
		if crossed[i] {
			continue
		}
		primes++
		for j := 2 * i; j <= n; j += i {
			crossed[j] = true
		}
	}
	return primes
}

// run is all executions by a number of workers: until the last one has its answer, and how many executions found another
// number of primes.
func (k *workers) run(ctx context.Context, n int) (took time.Duration, wrong int, err error) {
	all := k.rounds * uint32(k.p.Executions) // of which each slice has an equal part
	args := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(k.p.Task)), all)
	begun := time.Now()
	parts, err := k.c.Map(ctx, "primes", client.MapRequest{Args: args, Slices: k.p.Executions, AtOnce: n, Timeout: asyncBound})
	took = time.Since(begun)
	for _, part := range parts {
		if len(part.Reply) != 16 {
			return 0, 0, fmt.Errorf("function primes answers %d bytes, allowed: 16", len(part.Reply))
		}
		if binary.LittleEndian.Uint64(part.Reply) != k.primes*uint64(k.rounds) {
			wrong++
		}
	}
	return took, wrong, err
}

// calibrate sets the rounds so that one worker takes about so long for all executions.
func (k *workers) calibrate(ctx context.Context, lasts time.Duration) error {
	for {
		took := asyncBound
		for range 3 { // the first one may compile, others may be disturbed
			one, _, err := k.run(ctx, 1)
			if err != nil {
				return err
			}
			took = min(took, one)
		}
		if took >= lasts/8 {
			k.rounds = uint32(max(1, float64(k.rounds)*float64(lasts)/float64(took)))
			return nil
		}
		k.rounds *= 2
	}
}

// async has primes counted by rising numbers of workers.
func async(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, lasts, err := workersOf(s, o.Mode)
	if err != nil {
		return err
	}
	exact, _, err := s.Workers()
	if err != nil {
		return err
	}
	k, err := o.newWorkers(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	cores := runtime.NumCPU()
	threads := 2 * max(1, min(cores/2, 16)) // of both nodes
	if err := k.calibrate(ctx, lasts); err != nil {
		return err
	}
	r.Columns = []string{"workers", "max worker elapsed us", "speed-up", "efficiency", "wrong", "published us", "published speed-up"}
	r.Differences = append(r.Differences,
		fmt.Sprintf("the report does not say what its parameter of %d is: here the primes up to it are counted by trial division, %d times in each of %d executions, so that one worker takes about %v", p.Task, k.rounds, p.Executions, lasts),
		fmt.Sprintf("an execution is a slice of a Map, and n workers are n slices under way, each followed by the next: the published times of up to 8 workers are %d executions in turns of that many", exact.Executions),
		fmt.Sprintf("the two nodes compute %d slices at a time on %d cores, and others wait, where the report has a thread for each worker", threads, cores),
		"the published figures are of 8 cores: the speed-up is judged against the cores that are here")
	most := min(cores, threads)
	took := map[int]time.Duration{}
	for _, n := range p.Workers {
		o.Say("%d workers", n)
		total, wrong, err := k.run(ctx, n)
		if err != nil {
			return err
		}
		took[n] = total
		k.row(d, r, n, total, wrong, took[1])
	}
	judgeSpeedUp(r, p, took, most)
	asyncFigures(d, r, p.Workers, took, most)
	return k.control(ctx, r)
}

func (k *workers) row(d *published.Data, r *Report, n int, total time.Duration, wrong int, one time.Duration) {
	speedUp, was, wasOne := float64(one)/float64(total), d.WorkersUs(n), d.WorkersUs(1)
	wasUp := "-"
	if was > 0 {
		wasUp = fmt.Sprintf("%.2f", wasOne/was)
	}
	r.row(n, total.Microseconds(), fmt.Sprintf("%.2f", speedUp), fmt.Sprintf("%.2f", speedUp/float64(n)), wrong, fmt.Sprintf("%.0f", was), wasUp)
	if wrong > 0 {
		r.judge(Wrong, "%d workers: %d of %d executions do not find the %d primes up to %d, %d times", n, wrong, k.p.Executions, k.primes, k.p.Task, k.rounds)
	}
}

// turns is how many executions a worker has at most where n workers have all of them.
func turns(executions, n int) int { return (executions + n - 1) / n }

// judgeSpeedUp holds the times against as many cores as may compute, in whole executions.
func judgeSpeedUp(r *Report, p published.Workers, took map[int]time.Duration, cores int) {
	full := time.Duration(0) // of the first that has a worker for each core
	for _, n := range p.Workers {
		speedUp, least := float64(took[1])/float64(took[n]), minSpeedUp*float64(p.Executions)/float64(turns(p.Executions, min(n, cores)))
		if speedUp < least {
			r.judge(Fail, "%d workers on %d cores: a speed-up of %.2f, allowed: %.2f or more", n, cores, speedUp, least)
		}
		switch {
		case n >= cores && full == 0:
			full = took[n]
		case n > cores && float64(took[n]) > plateau*float64(full):
			r.judge(Fail, "%d workers on %d cores take %.2f of the time of as many as there are cores, allowed: %.2f", n, cores, float64(took[n])/float64(full), plateau)
		}
	}
}

// asyncFigures puts the times beside the published ones, and the speed-up on all cores beside the highlight.
func asyncFigures(d *published.Data, r *Report, list []int, took map[int]time.Duration, cores int) {
	best := 0.0
	for _, n := range list {
		speedUp := float64(took[1]) / float64(took[n])
		if n >= cores && best == 0 {
			best = speedUp
		}
		was := d.WorkersUs(n)
		if was == 0 {
			continue
		}
		row := fmt.Sprintf("%d workers", n)
		r.beside(report.Comparison{Table: "AsyncMethodCalls", Row: row, Metric: "max worker elapsed, other work", Unit: "us", Published: was}, float64(took[n].Microseconds()))
		if n > 1 {
			r.beside(report.Comparison{Table: "AsyncMethodCalls", Row: row, Metric: "speed-up", Published: d.WorkersUs(1) / was, At: fmt.Sprintf("%d cores; published 8", cores), Derived: true}, speedUp)
		}
	}
	if was := d.AsyncImprovement(); was > 0 {
		r.beside(report.Comparison{Table: "AsyncMethodCalls", Row: "a worker for each core", Metric: "least improvement", Unit: "%", Published: was, At: fmt.Sprintf("%d cores; published 8", cores)}, 100*best)
	}
}

// control asks for one prime more than there are up to the parameter, which has to be found wrong.
func (k *workers) control(ctx context.Context, r *Report) error {
	right := k.p.Task
	for sieve(k.p.Task) == k.primes {
		k.p.Task++
	}
	more := k.p.Task
	_, wrong, err := k.run(ctx, 2)
	k.p.Task = right
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("asked for the primes up to %d instead of %d, %d of %d executions are found wrong", more, right, wrong, k.p.Executions)
	if wrong != k.p.Executions {
		r.judge(Invalid, "the control finds %d of %d executions wrong: the counts are not to be believed", wrong, k.p.Executions)
	}
	return nil
}
