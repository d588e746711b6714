package artifact

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

// ErrUnavailable means that a class path cannot be had here: a test without it is skipped, or fails where it is required.
var ErrUnavailable = errors.New("a JDK of release 17 or later, and mvn with its repository, are needed; Debian has them in default-jdk-headless and maven")

// limit bounds one run of Maven. The first one may fetch 50 MB.
const limit = 15 * time.Minute

// Classpath returns the class path of a pom, named by its path in the repository, with size ("43 MB") as what Maven
// fetches the first time. It is kept below out/maven until the pom changes.
func Classpath(ctx context.Context, pom, size string) (string, error) {
	for _, program := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, pom))
	if err != nil {
		return "", err
	}
	list := filepath.Join(root, "out", "maven", fmt.Sprintf("%x.classpath", sha256.Sum256(text)))
	if path, ok := kept(list); ok {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", "-B", "-q", "-f", filepath.Join(root, pom), "dependency:build-classpath", "-Dmdep.outputFile="+list)
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: mvn dependency:build-classpath of %s (the first time it fetches %s): %w\n%s", ErrUnavailable, pom, size, err, output)
	}
	path, ok := kept(list)
	if !ok {
		return "", fmt.Errorf("mvn wrote no class path of %s to %s", pom, list)
	}
	return path, nil
}

// kept reads the list of an earlier run. It is of no use unless all of its files are still there.
func kept(list string) (string, bool) {
	text, err := os.ReadFile(list)
	if err != nil {
		return "", false
	}
	path := strings.TrimSpace(string(text))
	for _, jar := range filepath.SplitList(path) {
		if _, err := os.Stat(jar); err != nil {
			return "", false
		}
	}
	return path, path != ""
}
