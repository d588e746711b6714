//go:build e2e

package journal

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

const (
	namespace = "ordergrid-journal"
	grid      = "trades"
	orders    = 200 // of a round
)

var (
	program  string   // grid-node
	receipts []string // places in the log, such as "p1/17"
)

func TestJournal(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := fixture.New(t, namespace)
	program = testgrid.Program(t, "grid-node")
	volumes := kube.SharedVolumes{Namespace: namespace, Class: namespace, Claim: "journal", Folder: kube.BesideState("journals"),
		Pods: []string{api.PodName(grid, 0, 0), api.PodName(grid, 0, 1)}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), fixture.Patience)
		defer cancel()
		if err := s.Kube.RemoveVolumes(ctx, volumes); err != nil {
			t.Error(err)
		}
	})
	s.Open(ctx)
	s.Restrict(ctx)
	if err := s.Kube.LayVolumes(ctx, volumes); err != nil {
		t.Fatal(err)
	}
	s.Apply(ctx, "grid.yaml")
	s.Condition(ctx, "ordergrid", grid, api.ConditionJournalsHealthy, "True")
	s.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
	s.Parts(ctx,
		fixture.Part{Name: "all pods are gone at once", Run: powerCut},
		fixture.Part{Name: "once more, with what was accepted since", Run: powerCut},
		fixture.Part{Name: "the replicas' logs are equal byte for byte", Run: func(ctx context.Context, s *fixture.Fixture) { s.Verify(ctx, grid) }},
	)
}

// powerCut has orders accepted, deletes all pods without a moment to stop, and reads every order that was ever accepted.
func powerCut(ctx context.Context, s *fixture.Fixture) {
	submit(ctx, s)
	s.Must(s.Kube.Run(ctx, "delete", "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid, "--grace-period=0", "--force"))
	s.Eventually(ctx, "both pods again", fixture.Patience, func(ctx context.Context) error {
		out, err := s.Kube.Run(ctx, "get", "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid, "-o", `jsonpath={range .items[*]}{.status.containerStatuses[0].ready} {end}`)
		if err == nil && strings.TrimSpace(out) != "true true" {
			err = fmt.Errorf("ready: %q", out)
		}
		return err
	})
	s.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
	s.Condition(ctx, "ordergrid", grid, api.ConditionJournalsHealthy, "True")
	s.Condition(ctx, "ordergrid", grid, api.ConditionDataLossSuspected, "False")
	missing := 0
	for _, id := range receipts {
		if out, err := node(ctx, s, "", "get", "--id", id); err != nil {
			missing++
			s.Errorf("order %s was accepted and is not read: %v: %s", id, err, out)
		}
	}
	if lineages := s.Must(s.Kube.Run(ctx, "get", "gridpartitions", "-n", namespace, "-o", `jsonpath={.items[*].status.lineage}`)); strings.Trim(lineages, "1 ") != "" {
		s.Errorf("lineages are %s, want 1 in each partition: data was given up", lineages)
	}
	s.Logf("%d orders were accepted before power cuts, %d of them are missing", len(receipts), missing)
}

// submit has orders accepted on both copies.
func submit(ctx context.Context, s *fixture.Fixture) {
	var file strings.Builder
	for i := range orders {
		fmt.Fprintf(&file, "8=FIX.4.2|35=D|49=OMS|56=GRID|34=%d|52=20261124-10:00:00|11=%d-%d|21=1|55=IBM|54=1|38=100|40=2|44=9.5|60=20261124-10:00:00|\n", i+1, time.Now().UnixNano(), i)
	}
	out, err := node(ctx, s, file.String(), "submit", "--file", "-", "--seal")
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	before := len(receipts)
	for _, m := range regexp.MustCompile(`(?m)^(p\d+/\d+)@`).FindAllStringSubmatch(out, -1) {
		receipts = append(receipts, m[1])
	}
	if n := len(receipts) - before; n != orders {
		s.Fatalf("%d receipts, want %d: %s", n, orders, out)
	}
}

// node runs a command of grid-node at the grid's Service.
func node(ctx context.Context, s *fixture.Fixture, stdin, command string, args ...string) (string, error) {
	ip := s.Must(s.Kube.Run(ctx, "get", "service", grid+"-client", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"))
	cmd := exec.CommandContext(ctx, program, append([]string{command, "--endpoint", ip + ":7400", "--grid", grid, "--timeout", "20s"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	return string(out), err
}
