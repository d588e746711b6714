// Package kube drives a cluster through the kubectl binary, as a user would. The demo and the suites use it, so that what they
// show can be typed; it needs no Kubernetes library and compiles in a second. Of an API
// server that writes an audit log, it counts requests by user.
package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Cluster is where commands go.
type Cluster struct {
	Kubectl    string // path of the kubectl binary; "" is kubectl of $PATH
	Kubeconfig string // path of the kubeconfig; "" is kubectl's own choice
}

// CommandError is a kubectl that failed: the command and its output.
type CommandError struct {
	Args   []string
	Stderr string
	Err    error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("kubectl %s: %v: %s", strings.Join(e.Args, " "), e.Err, strings.TrimSpace(e.Stderr))
}

func (e *CommandError) Unwrap() error { return e.Err }

// Run executes kubectl with args and returns its standard output.
func (c Cluster) Run(ctx context.Context, args ...string) (string, error) {
	return c.run(ctx, nil, args...)
}

// Apply is `kubectl apply -f -` of the manifest.
func (c Cluster) Apply(ctx context.Context, manifest []byte) (string, error) {
	return c.run(ctx, manifest, "apply", "-f", "-")
}

// Get decodes `kubectl get ARGS -o json` into out.
func (c Cluster) Get(ctx context.Context, out any, args ...string) error {
	text, err := c.Run(ctx, append(append([]string{"get"}, args...), "-o", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return fmt.Errorf("kubectl get %s printed no JSON: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (c Cluster) run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	program := c.Kubectl
	if program == "" {
		program = "kubectl"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	if c.Kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	}
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), &CommandError{Args: args, Stderr: stderr.String(), Err: err}
	}
	return stdout.String(), nil
}

// WaitFor polls check until it answers true or ctx ends. Check also returns what is still missing: progress prints each new
// sentence once, and the error carries the last one.
func WaitFor(ctx context.Context, what string, progress func(string), check func(context.Context) (done bool, missing string, err error)) error {
	var last string
	for {
		done, missing, err := check(ctx)
		if done && err == nil {
			return nil
		}
		if err != nil {
			missing = err.Error()
		}
		if missing != last && progress != nil {
			progress(missing)
		}
		last = missing
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not come about: %s: %w", what, last, context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// IsNotFound reports whether kubectl answered that the object does not exist.
func IsNotFound(err error) bool {
	var ce *CommandError
	return errors.As(err, &ce) && strings.Contains(ce.Stderr, "(NotFound)")
}
