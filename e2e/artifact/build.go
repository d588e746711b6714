package artifact

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// reportEvery is how often a running build reports progress.
const reportEvery = 15 * time.Second

// Flags returns those of go build for a program that is run, not debugged: no directories of the machine, nothing of git, no
// DWARF, which the linker would drop and which takes an eighth of compiling. What is built with them shares the build cache.
func Flags(ldflags string) []string {
	return []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", strings.TrimSpace("-s -w " + ldflags)}
}

func (s *Set) flags() []string {
	return append([]string{"-mod=readonly", "-tags", s.Tags}, Flags(s.LDFlags)...)
}

// build compiles and links the mains into p.Out.
func (s *Set) build(ctx context.Context, p Preparation) error {
	p.Report("downloading the modules of %s", s.What)
	flags := s.flags()
	if s.Prepare != nil {
		more, err := s.Prepare(ctx, p)
		if err != nil {
			return err
		}
		flags = append(flags, more...)
	}
	total, err := s.packagesToCompile(ctx, p.Module, flags)
	if err != nil {
		return err
	}
	p.Report("compiling %d packages; what is done stays in the Go build cache if this is interrupted", total)
	args := append([]string{"build", "-v", "-o", p.Out + string(os.PathSeparator)}, flags...)
	cmd := s.goCommand(ctx, p.Module, append(args, s.Mains...)...)
	cmd.Env = append(cmd.Env, compilerGC()...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	progress := watch(total, p.Report)
	failure := readPackages(stderr, &progress.done)
	err = cmd.Wait()
	progress.stop()
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", p.Module, err, failure)
	}
	return nil
}

// packagesToCompile downloads what is missing and counts the packages the
// build cache does not hold.
func (s *Set) packagesToCompile(ctx context.Context, module string, flags []string) (int, error) {
	args := []string{"list", "-deps", "-f", `{{if and .Stale (ne .StaleReason "not installed but available in build cache")}}{{.ImportPath}}{{end}}`}
	list, err := s.goOutput(ctx, module, append(append(args, flags...), s.Mains...)...)
	return len(strings.Fields(list)), err
}

// compilerGC lets the compilers collect garbage less often where memory is
// plenty, which saves processor time.
func compilerGC() []string {
	meminfo, _ := os.ReadFile("/proc/meminfo")
	if os.Getenv("GOGC") != "" || availableKiB(string(meminfo)) < 6<<20 {
		return nil
	}
	return []string{"GOGC=400"}
}

// availableKiB is the memory programs can have without swapping, 0 if unknown.
func availableKiB(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}

// readPackages counts the package names go build -v prints and returns the
// rest, which are the errors, up to a few kilobytes.
func readPackages(r io.Reader, done *atomic.Int64) string {
	var rest bytes.Buffer
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.ContainsAny(line, " \t:") {
			done.Add(1)
			continue
		}
		if rest.Len() < 4096 {
			rest.WriteString(line + "\n")
		}
	}
	_, _ = io.Copy(io.Discard, r) // an over-long line must not block the build
	return rest.String()
}

// progress reports on a build until stopped.
type progress struct {
	done  atomic.Int64
	ended chan struct{}
}

func watch(total int, report func(string, ...any)) *progress {
	p := &progress{ended: make(chan struct{})}
	go func() {
		start := time.Now()
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-p.ended:
				return
			case <-ticker.C:
				report("%s", describe(p.done.Load(), int64(total), time.Since(start)))
			}
		}
	}()
	return p
}

func (p *progress) stop() { close(p.ended) }

// describe returns the progress of a build. The time to go assumes that packages cost
// the same on average, which holds to about a minute.
func describe(done, total int64, elapsed time.Duration) string {
	switch {
	case done == 0:
		return fmt.Sprintf("compiled 0 of %d packages", total)
	case done >= total:
		return fmt.Sprintf("compiled all %d packages; linking", total)
	}
	left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
	return fmt.Sprintf("compiled %d of %d packages, about %s to go", done, total, left.Round(10*time.Second))
}
