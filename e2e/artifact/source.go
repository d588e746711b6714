package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// key names one build: a hash of the module's files, the build flags, the Go
// version and the platform.
func (s *Set) key(ctx context.Context, module string) (string, error) {
	goEnv, err := s.goOutput(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%q\n%q\n", goEnv, s.flags(), s.Mains)
	if s.CGO || s.Recipe != "" {
		fmt.Fprintf(sum, "cgo %v, %s\n", s.CGO, s.Recipe)
	}
	files, err := sourceFiles(module)
	if err != nil {
		return "", err
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// sourceFiles lists what go build reads of the module itself, sorted. Mains of
// the module are below cmd; it may have none.
func sourceFiles(module string) ([]string, error) {
	files := []string{"go.mod", "go.sum"}
	err := filepath.WalkDir(filepath.Join(module, "cmd"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == filepath.Join(module, "cmd") {
			return nil
		}
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(module, path)
		files = append(files, rel)
		return err
	})
	slices.Sort(files)
	return files, err
}

// goCommand prepares the go tool in the module, independent of the caller's
// workspace and flags.
func (s *Set) goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cgo := "CGO_ENABLED=0"
	if s.CGO {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo, "GOWORK=off", "GOFLAGS=")
	return cmd
}

func (s *Set) goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := s.goCommand(ctx, dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("the go command is not in PATH: install Go 1.26 or newer")
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
