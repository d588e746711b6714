package script

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/fix/quickfixgo"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

var update = flag.Bool("update", false, "write the table of docs/fix.md")

func allCases(t *testing.T) map[string][]Case {
	t.Helper()
	dir, err := quickfixgo.Dir()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]Case{}
	for _, v := range Versions {
		if all[v.Name], err = Cases(dir, v); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Every script of the versions that the acceptor speaks, in a time of its own.
func TestConformance(t *testing.T) {
	for version, cases := range allCases(t) {
		for _, c := range cases {
			t.Run(version+"/"+c.Group+"/"+c.Name, func(t *testing.T) {
				world, err := NewVirtual(c.Profile)
				if err != nil {
					t.Fatal(err)
				}
				if err := Run(c.Path, world); err != nil {
					t.Errorf("%v\n  events: %q", err, world.Events)
				}
			})
		}
	}
}

// The same over sockets, in real time: some scripts wait for half a minute.
func TestConformanceOverSockets(t *testing.T) {
	if os.Getenv("ORDERGRID_FIX_SOCKETS") == "" {
		t.Skip("takes minutes; ORDERGRID_FIX_SOCKETS=1 runs it")
	}
	const parallel = 4
	if err := transport.TuneScheduler(parallel); err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{}, parallel)
	for version, cases := range allCases(t) {
		for _, c := range cases {
			t.Run(version+"/"+c.Group+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				free <- struct{}{}
				defer func() { <-free }()
				server, err := NewSocket(c.Profile)
				if err != nil {
					t.Fatal(err)
				}
				if err := Run(c.Path, server); err != nil {
					t.Errorf("%v\n  events: %q", err, server.Events())
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The scripts that there were when the table was written are all there, and the table has
// what each of them gave.
func TestPage(t *testing.T) {
	const begin, end = "<!-- conformance -->\n", "<!-- /conformance -->"
	table := page(t)
	path := "../../../docs/fix.md"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(raw), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no %q and %q", path, begin, end)
	}
	switch {
	case was == table:
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s is not what the scripts give; go test ./script -run TestPage -args -update writes it:\n%s", path, table)
	}
}

// page makes the table: a row per script, a column per version.
func page(t *testing.T) string {
	all := allCases(t)
	var names []string
	results := map[string]map[string]string{}
	passed := map[string]int{}
	for _, v := range Versions {
		for _, c := range all[v.Name] {
			name := c.Group + "/" + c.Name
			if results[name] == nil {
				results[name] = map[string]string{}
				names = append(names, name)
			}
			results[name][v.Name] = result(t, c)
			if results[name][v.Name] == "pass" {
				passed[v.Name]++
			}
		}
	}
	var b strings.Builder
	b.WriteString("| script | FIX 4.2 | FIX 4.4 | FIX 5.0 SP2 |\n|---|---|---|---|\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| %s |", name)
		for _, v := range Versions {
			r := results[name][v.Name]
			if r == "" {
				r = "–"
			}
			b.WriteString(" " + r + " |")
		}
		b.WriteByte('\n')
	}
	b.WriteString("| **passed** |")
	for _, v := range Versions {
		fmt.Fprintf(&b, " **%d of %d** |", passed[v.Name], len(all[v.Name]))
	}
	return b.String() + "\n"
}

func result(t *testing.T, c Case) string {
	world, err := NewVirtual(c.Profile)
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(c.Path, world); err != nil {
		t.Logf("%s: %v", c.Path, err)
		return "**fail**"
	}
	return "pass"
}
