package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script writes an executable that plays kubectl: the package's own handling of output, errors and input is under test here;
// the suites below e2e/ use the real one.
func script(t *testing.T, body string) Cluster {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Cluster{Kubectl: path, Kubeconfig: "/the/config"}
}

func TestRunPassesArgumentsInputAndConfig(t *testing.T) {
	c := script(t, `echo "$KUBECONFIG $*"; cat`)
	got, err := c.Apply(context.Background(), []byte("kind: X"))
	if err != nil || got != "/the/config apply -f -\nkind: X" {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestErrorsSayWhatWasRunAndWhatItSaid(t *testing.T) {
	c := script(t, `echo 'Error from server (NotFound): no such thing' >&2; exit 1`)
	_, err := c.Run(context.Background(), "get", "og", "x")
	if err == nil || !strings.Contains(err.Error(), "kubectl get og x") || !strings.Contains(err.Error(), "no such thing") {
		t.Fatalf("got %v", err)
	}
	if !IsNotFound(err) || IsNotFound(errors.New("(NotFound)")) {
		t.Fatal("IsNotFound must look at what kubectl said")
	}
}

func TestGetRefusesWhatIsNotJSON(t *testing.T) {
	var out map[string]any
	if err := script(t, `echo plain`).Get(context.Background(), &out, "pods"); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Fatalf("got %v", err)
	}
	if err := script(t, `echo '{"a":1}'`).Get(context.Background(), &out, "pods"); err != nil || out["a"] != 1.0 {
		t.Fatalf("got %v, %v", out, err)
	}
}

func TestWaitForReportsEachStateOnceAndTheLast(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	states, seen := []string{"a", "a", "b"}, []string{}
	i := 0
	err := WaitFor(ctx, "the thing", func(s string) { seen = append(seen, s) }, func(context.Context) (bool, string, error) {
		s := states[i]
		if i++; i == len(states) {
			cancel(errors.New("time is up"))
		}
		return false, s, nil
	})
	if err == nil || !strings.Contains(err.Error(), "the thing did not come about: b: time is up") {
		t.Fatalf("got %v", err)
	}
	if strings.Join(seen, "") != "ab" {
		t.Fatalf("progress %v", seen)
	}
}
