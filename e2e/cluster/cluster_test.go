package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	yes := func() error { return nil }
	no := func() error { return errors.New("not this") }
	none := func() Kind { return "" }
	has := func(kind Kind) func() Kind { return func() Kind { return kind } }
	docker := func(err func() error) func(context.Context) error {
		return func(context.Context) error { return err() }
	}
	for _, c := range []struct {
		name  string
		asked string
		h     host
		want  Kind
		says  string
	}{
		{"asked for current", "current", host{none, docker(yes), yes, yes}, Current, "asked"},
		{"asked for kind without Docker", "kind", host{none, docker(no), no, yes}, OnKind, "asked"},
		{"asked for local beside Docker", " local ", host{none, docker(yes), yes, no}, Local, "asked"},
		{"Docker and kind", "", host{none, docker(yes), yes, yes}, OnKind, "Docker runs"},
		{"Docker without kind", "", host{none, docker(yes), no, yes}, Local, "itself"},
		{"kind without Docker", "", host{none, docker(no), yes, yes}, Local, "itself"},
		{"a local one is up beside Docker", "", host{has(Local), docker(yes), yes, yes}, Local, "has one"},
		{"a kind one is up, Docker stopped", "", host{has(OnKind), docker(no), yes, yes}, OnKind, "has one"},
		{"asked for another than is up", "current", host{has(Local), docker(yes), yes, yes}, Current, "asked"},
		{"nothing", "", host{none, docker(no), no, no}, "", "CLUSTER=current"},
		{"nonsense", "minikube", host{none, docker(yes), yes, yes}, "", `"minikube"; use current, kind, local`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why, err := c.h.choose(t.Context(), c.asked)
			if err != nil {
				why = err.Error()
			}
			if got != c.want || !strings.Contains(why, c.says) || (err != nil) != (c.want == "") {
				t.Errorf("chose %q because %q, want %q because %q", got, why, c.want, c.says)
			}
		})
	}
}

func TestMachinesOf(t *testing.T) {
	if _, err := MachinesOf(newCurrent(Options{Progress: io.Discard}), Current); err == nil || !strings.Contains(err.Error(), "CLUSTER=local") {
		t.Errorf("the current cluster's nodes: %v", err)
	}
	if _, err := MachinesOf(&onKind{}, OnKind); err != nil {
		t.Errorf("kind's nodes: %v", err)
	}
}

// recorder stands for kind and docker: it notes what would be run.
type recorder struct {
	lines   []string
	answers map[string]string // by the first two words
}

func (r *recorder) run(_ context.Context, stdin io.Reader, args ...string) (string, error) {
	r.lines = append(r.lines, strings.Join(args, " "))
	if stdin != nil {
		input, err := io.ReadAll(stdin)
		if err != nil {
			return "", err
		}
		r.lines = append(r.lines, string(input))
	}
	if args[0] == "docker" && args[1] == "kill" && args[2] == "missing" {
		return "", errors.New("no such container: missing")
	}
	return r.answers[args[0]+" "+args[1]+" "+args[2]], nil
}

func recordedKind(t *testing.T, answers map[string]string) (*onKind, *recorder) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	k, err := newKind(Options{Root: t.TempDir(), Out: io.Discard, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	k.name = "ordergrid-1a2b3c4d"
	r := &recorder{answers: answers}
	k.run = r.run
	return k, r
}

const kindClusterConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
- role: worker
  labels:
    feature.node.kubernetes.io/cpu-cpuid.AVX512F: "true"
    feature.node.kubernetes.io/cpu-model.family: "6"
    feature.node.kubernetes.io/cpu-model.vendor_id: "Intel"
    feature.node.kubernetes.io/pci-0207_15b3.present: "true"
    feature.node.kubernetes.io/rdma.available: "true"
    feature.node.kubernetes.io/rdma.capable: "true"
    ordergrid.dev/pool: "xeon-ib"
- role: worker
  labels:
    ordergrid.dev/pool: "general"
`

func TestKindCommandLines(t *testing.T) {
	const name = "ordergrid-1a2b3c4d"
	running := map[string]string{"kind get clusters": "other\n" + name, "kind get nodes": name + "-worker"}
	for _, c := range []struct {
		what    string
		answers map[string]string
		do      func(*onKind) error
		want    []string
	}{
		{"up", map[string]string{"kind get clusters": "other"}, func(k *onKind) error { return k.Up(t.Context(), 0) }, []string{
			"kind get clusters",
			"kind create cluster --name " + name + " --kubeconfig KUBECONFIG --wait 5m --config -",
			kindClusterConfig,
			"kind export kubeconfig --name " + name + " --kubeconfig KUBECONFIG",
		}},
		{"up again repairs nodes", running, func(k *onKind) error { return k.Up(t.Context(), 0) }, []string{
			"kind get clusters",
			"kind get nodes --name " + name,
			"docker start " + name + "-worker",
			"docker exec " + name + "-worker sh -ec " + healScript,
			"kind export kubeconfig --name " + name + " --kubeconfig KUBECONFIG",
		}},
		{"down", running, func(k *onKind) error { return k.Down(t.Context()) }, []string{
			"kind delete cluster --name " + name + " --kubeconfig KUBECONFIG",
		}},
		{"load", running, func(k *onKind) error { return k.Load(t.Context(), "a.tar", "b.tar") }, []string{
			"kind load image-archive a.tar --name " + name,
			"kind load image-archive b.tar --name " + name,
		}},
		{"kill", running, func(k *onKind) error { return k.KillNode(t.Context(), "w") }, []string{"docker kill w"}},
		{"start", running, func(k *onKind) error { return k.StartNode(t.Context(), "w") }, []string{"docker start w", "docker exec w sh -c " + waitReady}},
		{"cut", running, func(k *onKind) error { return k.CutNode(t.Context(), "w") }, []string{"docker exec w sh -ec " + cutScript}},
		{"heal", running, func(k *onKind) error { return k.HealNode(t.Context(), "w") }, []string{"docker exec w sh -ec " + healScript}},
	} {
		t.Run(c.what, func(t *testing.T) {
			k, r := recordedKind(t, c.answers)
			if err := c.do(k); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(r.lines, "\n"), k.kubeconfig(), "KUBECONFIG")
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("would run\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestKindIsInspected(t *testing.T) {
	const name = "ordergrid-1a2b3c4d"
	k, _ := recordedKind(t, map[string]string{"kind get nodes": name + "-worker " + name + "-control-plane " + name + "-worker2"})
	if nodes, err := k.Nodes(t.Context()); err != nil || strings.Join(nodes, " ") != name+"-worker "+name+"-worker2" {
		t.Errorf("nodes %v, %v", nodes, err)
	}
	for answer, want := range map[string]string{
		"4711 2026-11-21T18:00:00Z\n": "process 4711, started 2026-11-21T18:00:00Z", "0 2026-11-21T18:00:00Z\n": "", "nonsense": "error",
	} {
		k, _ := recordedKind(t, map[string]string{"docker inspect --format": answer})
		if boot, err := k.Boot(t.Context(), "w"); boot != want && (want != "error" || err == nil) {
			t.Errorf("%q is boot %q, %v", answer, boot, err)
		}
	}
}

func TestKindErrorsNameTheNode(t *testing.T) {
	k, _ := recordedKind(t, nil)
	if err := k.KillNode(t.Context(), "missing"); err == nil || !strings.Contains(err.Error(), "kind get nodes --name ordergrid-1a2b3c4d") {
		t.Errorf("error is %v", err)
	}
}

func TestKindStatusWhenDown(t *testing.T) {
	k, _ := recordedKind(t, map[string]string{"kind get clusters": "other"})
	var out bytes.Buffer
	k.o.Out = &out
	if err := k.Status(t.Context()); err != nil || !strings.Contains(out.String(), "down") {
		t.Errorf("status is %q, %v", &out, err)
	}
}

// TestCurrent runs a kubectl of ours that answers for a cluster.
func TestCurrent(t *testing.T) {
	bin := t.TempDir()
	script := func(answer string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\n"+answer+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var said bytes.Buffer
	c := newCurrent(Options{Out: io.Discard, Progress: &said})

	script(`case "$1" in config) echo prod ;; *) echo ok ;; esac`)
	if err := c.Up(t.Context(), 0); err != nil || !strings.Contains(said.String(), `context "prod"`) || !strings.Contains(said.String(), "push them") {
		t.Errorf("up: %v, said %q", err, &said)
	}
	script(`case "$1" in config) echo prod ;; *) echo connection refused >&2; exit 1 ;; esac`)
	if err := c.Up(t.Context(), 0); err == nil || !strings.Contains(err.Error(), `"prod" does not answer`) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("up of an unreachable cluster: %v", err)
	}
	script(`echo "error: current-context is not set" >&2; exit 1`)
	if err := c.Up(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "kubectl config use-context") {
		t.Errorf("up without a context: %v", err)
	}
	script(`echo "must not be called" >&2; exit 1`)
	if err := c.Down(t.Context()); err != nil {
		t.Errorf("down: %v", err)
	}
	if err := c.Load(t.Context(), "a.tar"); err == nil || !strings.Contains(err.Error(), "registry") {
		t.Errorf("load: %v", err)
	}
	if err := c.Up(t.Context(), 2); err == nil {
		t.Error("a number of nodes was accepted")
	}
	t.Setenv("KUBECONFIG", "/one:/two")
	if path, err := c.Kubeconfig(t.Context()); err != nil || path != "/one" {
		t.Errorf("kubeconfig is %q, %v", path, err)
	}
}

func TestCheckout(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(root, "e2e", "cluster", "binaries")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, module := range map[string]string{root: checkout.Module, inner: checkout.Module + "/e2e/cluster/binaries"} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(fmt.Sprintf("// A module.\nmodule %s\n\ngo 1.26\n", module)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inner)
	if got, err := checkout.Root(); err != nil || got != root {
		t.Errorf("from a nested module: %q, %v; want %q", got, err, root)
	}
	t.Chdir(t.TempDir())
	if _, err := checkout.Root(); err == nil || !strings.Contains(err.Error(), "not inside a checkout") {
		t.Errorf("outside: %v", err)
	}
}

func TestExisting(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	root := t.TempDir()
	if kind := existing(root); kind != "" {
		t.Errorf("a fresh checkout has a %s cluster", kind)
	}
	k, err := newKind(Options{Root: root, Out: io.Discard, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	k.run = (&recorder{answers: map[string]string{}}).run
	if err := k.Up(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if kind := existing(root); kind != OnKind {
		t.Errorf("after up on kind it is %q", kind)
	}
	if err := k.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kind := existing(root); kind != "" {
		t.Errorf("after down it is %q", kind)
	}
}
