package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ModuleDir is the directory, read-only, of a Go module in the module cache, such as for the manifests that are published
// with it. query is its path, of the version that the module in dir requires, or PATH@VERSION. It is downloaded, not built,
// where the cache lacks it, and checked against the go.sum in dir.
func ModuleDir(ctx context.Context, dir, query string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the go command is not in PATH: install Go 1.26 or newer")
	}
	var answer struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &answer); err == nil {
		err = bad
	}
	if answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w %s; it needs a Go module proxy or a module cache that has it", query, err, strings.TrimSpace(stderr.String()))
	}
	return answer.Dir, nil
}
