//go:build e2e

package outside

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

const (
	namespace = "ordergrid-outside"
	grid      = "trades"
	// nodesName is in the certificate of every node, whatever address it is reached at.
	nodesName = grid + "-client." + namespace + ".svc"
	// orders of one call: enough for each of the four partitions to get some.
	orders = 60
)

// programs is the directory of grid-node and cluster, dir has the client's certificate.
var programs, dir string

func TestOutside(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
	defer cancel()
	s := fixture.New(t, namespace)
	dir = t.TempDir()
	for _, program := range []string{"grid-node", "e2e/cluster/cmd/cluster"} {
		programs = filepath.Dir(testgrid.Program(t, program))
	}
	s.Open(ctx, "certificates.namespaces={"+namespace+"}")
	s.Apply(ctx, "grid.yaml")
	s.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
	s.Parts(ctx,
		fixture.Part{Name: "docs/client.md word by word", Run: fiveMinutes},
		fixture.Part{Name: "a pod's own address leads nowhere from outside", Run: podsAreNotReached},
		fixture.Part{Name: "a client that gets addresses of inside cannot follow", Run: insideAddress},
		fixture.Part{Name: "NodePort: both shards, from each address", Run: bothShards},
		fixture.Part{Name: "NodePort: primaries move under orders", Run: primariesMove},
		fixture.Part{Name: "HostPort in place of NodePort", Run: hostPorts},
		fixture.Part{Name: "HostPort: both shards, from each address", Run: bothShards},
		fixture.Part{Name: "HostPort: primaries move under orders", Run: primariesMove},
		fixture.Part{Name: "the replicas' logs are equal byte for byte", Run: func(ctx context.Context, s *fixture.Fixture) { s.Verify(ctx, grid) }},
	)
}

// outside runs a program where clients outside are; what it prints comes back.
func outside(ctx context.Context, s *fixture.Fixture, stdin string, args ...string) (string, error) {
	cmd := outsideCommand(ctx, s, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	s.Logf("outside$ %s (%v)\n%s", strings.Join(args, " "), err, shortened(out.String()))
	return out.String(), err
}

func outsideCommand(ctx context.Context, s *fixture.Fixture, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "cluster"), append([]string{"outside", "--", "sh", "-c", `cd "$0" && exec "$@"`, dir}, args...)...)
	cmd.Dir = s.Root // a checkout has one cluster
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig())
	return cmd
}

// shortened leaves the middle of a long output out.
func shortened(out string) string {
	lines := strings.SplitAfter(out, "\n")
	if len(lines) > 12 {
		lines = slices.Concat(lines[:6], []string{fmt.Sprintf("… %d lines …\n", len(lines)-12)}, lines[len(lines)-6:])
	}
	return strings.Join(lines, "")
}

// kubeconfig is one whose namespace is the suite's, so that commands of the page need no -n.
func kubeconfig() string { return filepath.Join(dir, "kubeconfig") }

// fiveMinutes runs the commands of the page as they stand there, but for ADDRESS and NAMESPACE, all of them from outside.
func fiveMinutes(ctx context.Context, s *fixture.Fixture) {
	config := s.Must(s.Kube.Run(ctx, "config", "view", "--raw", "--flatten"))
	if err := os.WriteFile(kubeconfig(), []byte(config), 0o600); err != nil {
		s.Fatal(err)
	}
	s.Must(s.Kube.Run(ctx, "config", "--kubeconfig", kubeconfig(), "set-context", "--current", "--namespace", namespace))
	page, err := os.ReadFile(filepath.Join(s.Root, "docs", "client.md"))
	if err != nil {
		s.Fatal(err)
	}
	block := regexp.MustCompile("(?s)## From outside the cluster.*?```sh\n(.*?)```").FindSubmatch(page)
	if block == nil {
		s.Fatal("the page has no commands below `From outside the cluster`")
	}
	address := ""
	for line := range strings.Lines(string(block[1])) {
		out, err := outside(ctx, s, "", "sh", "-c", strings.NewReplacer("ADDRESS", address, "NAMESPACE", namespace).Replace(line))
		if err != nil {
			s.Fatal(err)
		}
		if strings.Contains(line, "externalAddresses") {
			address = strings.Fields(out + " none")[0]
		}
		if strings.HasPrefix(line, "grid-node submit") && !strings.Contains(out, "copies 2") {
			s.Fatal("no order was accepted on two copies")
		}
	}
	s.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
	s.Condition(ctx, "ordergrid", grid, api.ConditionProgressing, "False")
}

// submit puts so many orders on the grid from outside, beginning at an endpoint, and counts receipts by partition.
func submit(ctx context.Context, s *fixture.Fixture, endpoint string, n int) (map[string]int, error) {
	var file strings.Builder
	for i := range n {
		fmt.Fprintf(&file, "8=FIX.4.2|35=D|49=OMS|56=GRID|34=%d|52=20261122-10:00:00|11=%d-%d|21=1|55=IBM|54=1|38=100|40=2|44=9.5|60=20261122-10:00:00|\n", i+1, time.Now().UnixNano(), i)
	}
	args := append([]string{"grid-node", "submit", "--endpoint", endpoint, "--grid", grid, "--timeout", "20s", "--file", "-", "--seal"}, proof...)
	out, err := outside(ctx, s, file.String(), args...)
	receipts := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^(p\d+)/\d+@`).FindAllStringSubmatch(out, -1) {
		receipts[m[1]]++
	}
	return receipts, err
}

// proof is what the page has the client present; the files are in the folder where the page's commands were run.
var proof = []string{"--tls-cert", "tls.crt", "--tls-key", "tls.key", "--tls-ca", "ca.crt", "--tls-name", nodesName}

// podsAreNotReached shows that the place is outside.
func podsAreNotReached(ctx context.Context, s *fixture.Fixture) {
	ip := s.Must(s.Kube.Run(ctx, "get", "pod", grid+"-s0-0", "-n", namespace, "-o", "jsonpath={.status.podIP}"))
	if receipts, err := submit(ctx, s, ip+":7400", 1); err == nil {
		s.Fatalf("pod address %s is reached: this is not outside the cluster (%v)", ip, receipts)
	}
}

// insideAddress is the control: without the addresses of spec.externalAccess a way in does not lead on.
func insideAddress(ctx context.Context, s *fixture.Fixture) {
	s.Apply(ctx, "inside-address.yaml")
	port := s.Must(s.Kube.Run(ctx, "get", "service", "inside-address", "-n", namespace, "-o", "jsonpath={.spec.ports[0].nodePort}"))
	host := s.Must(s.Kube.Run(ctx, "get", "pod", grid+"-s0-0", "-n", namespace, "-o", "jsonpath={.status.hostIP}"))
	receipts, err := submit(ctx, s, host+":"+port, orders)
	if err == nil || len(receipts) > 0 {
		s.Fatalf("%v were accepted (%v): a client outside follows addresses of inside, so nothing here shows anything", receipts, err)
	}
	s.Must(s.Kube.Run(ctx, "delete", "service", "inside-address", "-n", namespace))
}

// addresses of all pods, as clients outside get them.
func addresses(ctx context.Context, s *fixture.Fixture) []string {
	out := s.Must(s.Kube.Run(ctx, "get", "ordergrid", grid, "-n", namespace, "-o", "jsonpath={.status.externalAddresses[*].address}"))
	list := strings.Fields(out)
	if slices.Sort(list); len(slices.Compact(list)) != 4 {
		s.Fatalf("addresses for clients outside: %v, want four different ones", list)
	}
	return list
}

// bothShards begins at each pod, knowing no other address, and reaches all four partitions.
func bothShards(ctx context.Context, s *fixture.Fixture) {
	for _, address := range addresses(ctx, s) {
		receipts, err := submit(ctx, s, address, orders)
		if err != nil || len(receipts) != 4 {
			s.Fatalf("from %s: receipts of %v (%v), want some of four partitions", address, receipts, err)
		}
	}
}

// primariesMove ends the process of a pod of each shard under the orders of one client, which knew one address in the
// beginning. The pods that come may be on other machines; the operator then hands partitions back to them.
func primariesMove(ctx context.Context, s *fixture.Fixture) {
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	cmd := outsideCommand(ctx, s, "env", clientVariable+"="+addresses(ctx, s)[0], self)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	end, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	defer cmd.Process.Kill() //nolint:errcheck // it has ended, unless the suite failed
	for _, pod := range []string{grid + "-s0-0", grid + "-s1-1"} {
		before := s.Must(s.Kube.Run(ctx, "get", "pod", pod, "-n", namespace, "-o", "jsonpath={.metadata.uid}"))
		s.Must(s.Kube.Run(ctx, "delete", "pod", pod, "-n", namespace, "--grace-period=0", "--force"))
		s.Eventually(ctx, "another pod "+pod, fixture.Patience, func(ctx context.Context) error {
			now, err := s.Kube.Run(ctx, "get", "pod", pod, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
			if err == nil && now == before {
				err = errors.New("it is there still")
			}
			return err
		})
		s.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
		s.Condition(ctx, "ordergrid", grid, api.ConditionExternalAccessReady, "True")
	}
	if err := errors.Join(end.Close(), cmd.Wait()); err != nil {
		s.Fatalf("the client outside: %v: %s", err, said.String())
	}
	s.Logf("the client outside: %s", out.String())
	var a account
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		s.Fatal(err)
	}
	sum := 0
	for _, n := range a.Accepted {
		sum += n
	}
	if a.Failed+int(a.Violations) != 0 || a.Found != sum || len(a.Accepted) != 4 || len(a.Outages) == 0 {
		s.Fatalf("of %d accepted orders %d were found; %d failed, %d violations, %d outages: want all of four partitions, none, none, and some",
			sum, a.Found, a.Failed, a.Violations, len(a.Outages))
	}
}

// hostPorts changes the way in of a running grid: every pod is replaced, and every address is another.
func hostPorts(ctx context.Context, s *fixture.Fixture) {
	before := addresses(ctx, s)
	s.Must(s.Kube.Run(ctx, "patch", "ordergrid", grid, "-n", namespace, "--type=merge", "-p", `{"spec":{"externalAccess":{"type":"HostPort"}}}`))
	s.Eventually(ctx, "host ports in place of node ports", 2*fixture.Patience, func(ctx context.Context) error {
		left, err := s.Kube.Run(ctx, "get", "services", "-n", namespace, "-l", api.LabelExternalPod, "-o", "name")
		now, err2 := s.Kube.Run(ctx, "get", "ordergrid", grid, "-n", namespace, "-o",
			`jsonpath={.status.externalAddresses[*].address} {.status.conditions[?(@.type=="Progressing")].status} {.status.conditions[?(@.type=="Redundant")].status}`)
		if err = cmp.Or(err, err2); err == nil && (left != "" || !strings.HasSuffix(now, " False True") || strings.Contains(now, before[0])) {
			err = fmt.Errorf("addresses, progressing, redundant: %s; services left: %q", now, left)
		}
		return err
	})
}
