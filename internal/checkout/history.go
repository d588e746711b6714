package checkout

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// ReleaseBefore is the commit that stands for the release before: an installation of it is what `helm upgrade`
// begins with. Its chart is in charts/upgrade/testdata/previous.
const ReleaseBefore = "9bf3e73"

// HasCommit reports whether the clone at root has a commit; a shallow one has not.
func HasCommit(ctx context.Context, root, commit string) bool {
	return exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run() == nil
}

// LayOutCommit writes the tree of a commit into a directory, which is made.
func LayOutCommit(ctx context.Context, root, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	git, tar := exec.CommandContext(ctx, "git", "-C", root, "archive", commit), exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	var err error
	if tar.Stdin, err = git.StdoutPipe(); err != nil {
		return err
	}
	if err := tar.Start(); err != nil {
		return err
	}
	if err := git.Run(); err != nil {
		return fmt.Errorf("git archive %s: %w", commit, err)
	}
	return tar.Wait()
}
