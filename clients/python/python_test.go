package python

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// interpreter returns a Python that the client is for. It is a failure that there is none where one is required.
func interpreter(t *testing.T) string {
	t.Helper()
	const check = "import sys; sys.exit(sys.version_info < (3, 10))"
	path, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(path, "-c", check).Run()
	}
	if err == nil {
		return path
	}
	if os.Getenv("ORDERGRID_REQUIRE_PYTHON") != "" {
		t.Fatalf("python3 of 3.10 or newer: %v; apt-get install python3", err)
	}
	t.Skipf("python3 of 3.10 or newer: %v; apt-get install python3 to run this", err)
	return ""
}

// TestSuite runs the unit tests of the Python client over the vectors of the protocol, and those against real grids,
// with primaries killed: 3 of them, or as many as ORDERGRID_CLIENT_KILLS says.
func TestSuite(t *testing.T) {
	python := interpreter(t)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	suite := exec.CommandContext(ctx, python, "-B", "-m", "unittest", "discover", "-v", "-s", "tests")
	suite.Env = append(os.Environ(), "PYTHONPATH=src", "ORDERGRID_NODE="+testgrid.Program(t, "grid-node"), "PYTHONWARNINGS=error::ResourceWarning")
	suite.WaitDelay = 10 * time.Second
	out, err := suite.CombinedOutput()
	text := string(out)
	switch {
	case err != nil:
		t.Fatalf("%v\n%s", err, text)
	case strings.Contains(text, "skipped"):
		t.Errorf("tests were skipped:\n%s", text)
	case !regexp.MustCompile(`(?m)^Ran [2-9]\d tests`).MatchString(text):
		t.Errorf("fewer than 20 tests ran:\n%s", text)
	}
	t.Log(text)
}

// TestTypes runs mypy over the client, where there is one: pip install mypy.
func TestTypes(t *testing.T) {
	path, err := exec.LookPath("mypy")
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_MYPY") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; `make clients-check` installs one", err)
	}
	if out, err := exec.Command(path, "--strict", "--python-version", "3.10", "--cache-dir", t.TempDir(), "src", "tests", "bench").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
