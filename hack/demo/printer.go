package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// printer writes headlines and lines, with colour only on a terminal.
type printer struct {
	w     io.Writer
	begin time.Time
	bold  func(string) string
}

func newPrinter(f *os.File) *printer {
	p := &printer{w: f, begin: time.Now(), bold: func(s string) string { return s }}
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		p.bold = func(s string) string { return "\x1b[1m" + s + "\x1b[0m" }
	}
	return p
}

func (p *printer) headline(n, of int, title string) {
	fmt.Fprintf(p.w, "\n%s\n", p.bold(fmt.Sprintf("[%d/%d] %s", n, of, title)))
}

// line prints one line behind the time since the demo began.
func (p *printer) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text == "" {
		fmt.Fprintln(p.w)
		return
	}
	fmt.Fprintf(p.w, "%6s  %s\n", time.Since(p.begin).Round(time.Second), text)
}

// block prints text as it is: tables and commands to copy.
func (p *printer) block(text string) {
	fmt.Fprintf(p.w, "\n%s\n", strings.TrimRight(text, "\n"))
}

// command runs a program (its name and its arguments) and shows what it was and what it prints.
func (p *printer) command(ctx context.Context, argv ...string) error {
	p.line("$ %s", strings.Join(argv, " "))
	return p.stream(exec.CommandContext(ctx, argv[0], argv[1:]...))
}

// stream passes each line a program prints on behind the clock, and keeps the last ones for the error.
func (p *printer) stream(cmd *exec.Cmd) error {
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	done := make(chan string, 1)
	go func() {
		var last []string
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.line("  %s", lines.Text())
			if last = append(last, lines.Text()); len(last) > 5 {
				last = last[1:]
			}
		}
		_, _ = io.Copy(io.Discard, r) // a line beyond the limit must not block the program
		done <- strings.Join(last, "\n")
	}()
	err := cmd.Run()
	_ = w.Close()
	said := <-done
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said)
	}
	return nil
}

// build is `go build` of a program, and shows that time passes.
func (p *printer) build(ctx context.Context, program string, args ...string) error {
	what := "go build " + program
	t := time.Now()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-tick.C:
				p.line("%s: %s so far", what, time.Since(t).Round(time.Second))
			case <-stop:
				return
			}
		}
	}()
	out, err := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, out)
	}
	p.line("%s: %s", what, time.Since(t).Round(time.Second))
	return nil
}
