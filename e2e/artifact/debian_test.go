package artifact

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	got := MissingTools([]Tool{{"sh", "dash"}, {"no-such-a", "x"}, {"no-such-b", "x"}, {"no-such-c", "y"}, {"/anything/with/a/slash", "z"}})
	if want := []string{"x", "y"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if path, err := LookPath("sh"); err != nil || !strings.HasSuffix(path, "/sh") {
		t.Errorf("sh: %q, %v", path, err)
	}
	if path, err := LookPath("etc"); err == nil {
		t.Errorf("a directory is a program: %s", path)
	}
}

func TestInstallWithoutApt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := InstallPackages(context.Background(), []string{"stress-ng"}); err == nil || !strings.Contains(err.Error(), "stress-ng") {
		t.Errorf("without apt-get: %v", err)
	}
}
