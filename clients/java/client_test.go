package java

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

const root = "../.."

var temporary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ordergrid-java-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	temporary = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // below the directory for temporary files
	os.Exit(code)
}

// compiled is the directory of the classes of the client and its tests. javac needs no network, unlike Maven.
var compiled = sync.OnceValues(func() (string, error) {
	sources, err := filepath.Glob("src/*/java/dev/ordergrid/client/*.java")
	if err != nil {
		return "", err
	}
	classes := filepath.Join(temporary, "classes")
	out, err := exec.Command("javac", append([]string{"--release", "17", "-Xlint:all", "-Werror", "-d", classes}, sources...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return classes, nil
})

// java is the command that runs a class of the tests.
func java(t *testing.T, class string, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_JAVA") != "" {
			t.Fatal(err)
		}
		t.Skip("no JDK is installed, release 17 or later; Debian has it in default-jdk-headless")
	}
	classes, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := filepath.Abs(filepath.Join(root, "docs/protocol/vectors"))
	if err != nil {
		t.Fatal(err)
	}
	// A small heap: what a node sends must not make the client take memory.
	flags := []string{"-Xmx128m", "-XX:MaxDirectMemorySize=64m", "-XX:TieredStopAtLevel=1", "-ea", "-Dvectors=" + vectors, "-cp", classes, "dev.ordergrid.client." + class}
	return exec.CommandContext(t.Context(), "java", append(flags, args...)...)
}

func runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestOwn runs the tests that need no grid: the conformance vectors, hostile nodes, the rules of exactly once.
func TestOwn(t *testing.T) { runs(t, java(t, "Tests")) }

func TestGrid(t *testing.T) {
	runs(t, java(t, "GridCheck", strings.Join(testgrid.Run(t).Endpoints, ",")))
}

func TestGridTLS(t *testing.T) {
	cmd := java(t, "GridCheck")
	g := testgrid.Run(t, "--tls")
	cmd.Args = append(cmd.Args, strings.Join(g.Endpoints, ","), g.TLS.Cert, g.TLS.Key, g.TLS.CA)
	runs(t, cmd)
}

// TestGridRegions makes all changes of regions, and reads, on a real grid.
func TestGridRegions(t *testing.T) {
	runs(t, java(t, "RegionCheck", strings.Join(regionGrid(t).Endpoints, ",")))
}

// regionGrid is a grid that has the regions of the tests.
func regionGrid(t *testing.T) *testgrid.Grid {
	t.Helper()
	file := filepath.Join(t.TempDir(), "regions.yaml")
	const text = "memory: 64Mi\nregions:\n- name: positions\n- name: tokens\n- {name: small, maxBytes: 8Ki}\n- {name: brief, life: 200ms}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return testgrid.Run(t, "--", "--regions", file)
}

// TestReadme runs the program that README.md has to paste.
func TestReadme(t *testing.T) {
	cmd := java(t, "unused")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(text), "<!-- First.java -->\n```java\n")
	program, _, ends := strings.Cut(program, "\n```\n")
	if !ok || !ends || !strings.Contains(program, `"127.0.0.1:7400"`) {
		t.Fatal("README.md has no First.java that connects to 127.0.0.1:7400")
	}
	program = strings.Replace(program, "127.0.0.1:7400", testgrid.Run(t).Endpoints[0], 1)
	file := filepath.Join(t.TempDir(), "First.java")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Args[len(cmd.Args)-1] = file
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "accepted: p") || !strings.Contains(string(out), "read: ORD-") {
		t.Fatalf("%v\n%s", err, out)
	}
}
