package proc

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start("shell", exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestLine(t *testing.T) {
	p := start(t, "echo hello; echo listening 127.0.0.1:1; exec sleep 60")
	if got, err := p.Line(t.Context(), "listening"); err != nil || got != "127.0.0.1:1" {
		t.Errorf("%q, %v", got, err)
	}
}

// A child that ends early is reported with its last output.
func TestLineOfAChildThatFails(t *testing.T) {
	p := start(t, "echo no such port >&2; exit 3")
	if _, err := p.Line(t.Context(), "listening"); err == nil || !strings.Contains(err.Error(), "no such port") {
		t.Errorf("%v", err)
	}
}

func TestStop(t *testing.T) {
	p := start(t, "echo ready; exec sleep 60")
	if _, err := p.Line(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-p.Ended():
	default:
		t.Error("it runs")
	}
	if err := p.Stop(); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// The last started stops first, and all stop whatever one of them answers.
func TestGroup(t *testing.T) {
	var g Group
	order := ""
	wrong := errors.New("wrong")
	g.Add(func() error { order += "a"; return nil })
	g.Add(func() error { order += "b"; return wrong })
	g.Add(func() error { order += "c"; return nil })
	if err := g.Stop(); !errors.Is(err, wrong) || order != "cba" {
		t.Errorf("%q, %v", order, err)
	}
	if err := g.Stop(); err != nil || order != "cba" {
		t.Errorf("stopped twice: %q, %v", order, err)
	}
}
