package java

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
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

// kills is how many primaries TestGridKilled kills.
func kills(t *testing.T) int {
	s := os.Getenv("ORDERGRID_CLIENT_KILLS")
	if s == "" {
		return 3
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("ORDERGRID_CLIENT_KILLS is %q, allowed: 1 or more", s)
	}
	return n
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

// TestGridKilled kills primaries with SIGKILL under load of the Java client. Every order that it got a receipt for is in the
// log once, at its place, and in the order of its session; none is there twice; the replicas are equal.
func TestGridKilled(t *testing.T) {
	receipts := filepath.Join(t.TempDir(), "receipts")
	cmd := java(t, "KillLoad")
	g := testgrid.Run(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	load := start(t, cmd, strings.Join(g.Endpoints, ","), receipts)
	t.Cleanup(func() { load.threads(t) })
	for i := range kills(t) {
		redundant(t, c)
		kill(t, c, g, load, i)
	}
	redundant(t, c)
	load.stop(t)
	judge(t, c, receipts)
}

// process is a load that runs until its standard input is closed.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    bytes.Buffer // what it prints, and
	errs   bytes.Buffer // on standard error; both to be read when it has exited
	exited chan error
}

func start(t *testing.T, cmd *exec.Cmd, args ...string) *process {
	t.Helper()
	p := &process{cmd: cmd, exited: make(chan error, 1)}
	p.cmd.Args = append(p.cmd.Args, args...)
	cmd.Stderr = &p.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in = in
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(&p.out, lines) // it ends with the process
		p.exited <- cmd.Wait()
	}()
	if err != nil || first != "running\n" {
		t.Fatalf("the load printed %q: %v\n%s", first, err, p.wait())
	}
	return p
}

func (p *process) text() string { return p.out.String() + p.errs.String() }

func (p *process) wait() string {
	_ = p.in.Close() // the process may have ended
	return fmt.Sprintf("%v\n%s", <-p.exited, p.text())
}

// alive fails the test when the load has ended.
func (p *process) alive(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.exited:
		t.Fatalf("the load ended: %v\n%s", err, p.text())
	default:
	}
}

// threads logs the threads of a load that still runs when the test has failed.
func (p *process) threads(t *testing.T) {
	if !t.Failed() || p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	time.Sleep(time.Second)
	_ = p.cmd.Process.Kill() // it may have ended
	t.Logf("load: %s", p.wait())
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.in.Close() // the process may have ended
	if err := <-p.exited; err != nil {
		t.Fatalf("the load: %v\n%s", err, p.text())
	}
	t.Logf("load: %s", p.text())
}

// redundant waits until every partition has a primary and two replicas in sync.
func redundant(t *testing.T, c *client.Client) {
	t.Helper()
	until(t, "two replicas in sync of each partition", func() bool {
		if c.Refresh(t.Context()) != nil {
			return false
		}
		for _, p := range c.Table() {
			n := 0
			for _, m := range p.Members {
				if m.InSync {
					n++
				}
			}
			if n < 2 || p.Primary.ID == "" {
				return false
			}
		}
		return true
	})
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 2 min: %s", what)
		}
	}
}

// kill kills the primary of the partition whose turn it is, once the load has orders there. Each third is not killed but
// stopped until another one has taken over: its connections stay open and are silent.
func kill(t *testing.T, c *client.Client, g *testgrid.Grid, load *process, turn int) {
	t.Helper()
	p := c.Table()[turn%len(c.Table())]
	seq := committed(t, c, p)
	until(t, "200 more entries", func() bool { load.alive(t); return committed(t, c, p) > seq+200 })
	pid, err := g.PIDOf(p.Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	signal := syscall.SIGKILL
	if turn%3 == 2 {
		signal = syscall.SIGSTOP
		defer syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // it may be gone by then
	}
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
	until(t, "another primary", func() bool { return c.Refresh(t.Context()) == nil && c.Table()[p.ID].Epoch > p.Epoch })
}

// committed is how far the primary's log is.
func committed(t *testing.T, c *client.Client, p client.PartitionInfo) uint64 {
	t.Helper()
	r := c.NewLogReader(p.ID, p.Primary.Address)
	if _, err := r.Next(t.Context(), func(client.LogEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return r.End().CommitSeq
}

// judge compares the receipts with the logs.
func judge(t *testing.T, c *client.Client, receipts string) {
	t.Helper()
	result, err := verify.Run(t.Context(), verify.FromClient(c), verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode() != verify.ExitEqual {
		var text bytes.Buffer
		_ = result.WriteText(&text) // a buffer takes everything
		t.Fatalf("%s", &text)
	}
	text, err := os.ReadFile(receipts)
	if err != nil {
		t.Fatal(err)
	}
	places, last, n := places(t, c), map[string]uint64{}, 0
	for line := range strings.Lines(string(text)) {
		var session, id string
		var at wire.OrderID
		if _, err := fmt.Sscan(line, &session, &id, &at.Partition, &at.Seq); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if n++; places[id] != at {
			t.Errorf("order %s has a receipt for %s and is at %s", id, at, places[id])
		}
		if at.Seq <= last[session] {
			t.Errorf("order %s at %s is behind its successor at %d", id, at, last[session])
		}
		last[session] = at.Seq
		delete(places, id)
	}
	if len(places) > 0 || n == 0 {
		t.Errorf("%d orders of the logs have no receipt, %d have one", len(places), n)
	}
	t.Logf("%d orders acknowledged, each in the log once", n)
}

// places are those of all orders in the logs.
func places(t *testing.T, c *client.Client) map[string]wire.OrderID {
	t.Helper()
	found := map[string]wire.OrderID{}
	for _, p := range c.Table() {
		_, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind != order.KindOrder {
				return nil
			}
			id := string(order.ClOrdID(e.Bytes))
			if other, twice := found[id]; twice {
				t.Errorf("order %s is in the log twice: %s and p%d/%d", id, other, p.ID, e.Seq)
			}
			found[id] = wire.OrderID{Partition: p.ID, Seq: e.Seq}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
