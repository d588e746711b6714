//go:build e2e

// Package cluster is an OrderGateway for FIX on a real cluster: its pods before a grid with TLS, QuickFIX/J and quickfixgo as
// counterparties, and the orders of both while pods are killed, deleted, updated, and made three and one again, and the grid
// fails over. The engines log on again without a reset of their numbers. `make e2e SUITE=fix` runs it; it needs services
// that this machine reaches, as those of the local cluster, and Java and Maven.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/fix/desk"
	"github.com/ordergrid/ordergrid/e2e/fix/quickfixj"
	"github.com/ordergrid/ordergrid/e2e/fixture"
)

const (
	namespace = "ordergrid-fix"
	grid      = "trades"
	gateway   = "street"
	// program is the process of a pod, as /proc has its command line.
	program = "/order-gateway\x00--grid\x00" + grid + "\x00"
	// pace is the time between two orders of a desk.
	pace = 20 * time.Millisecond
)

// desks send orders from the first part to the last.
var desks []*desk.Desk

// TestFIX runs its parts in order; each needs the one before.
func TestFIX(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
	defer cancel()
	s := fixture.New(t, namespace)
	s.Open(ctx, "certificates.namespaces={"+namespace+"}")
	s.Restrict(ctx)
	s.Apply(ctx, "grid.yaml")
	s.Condition(ctx, "ordergrid", grid, "Redundant", "True")
	defer func() {
		for _, d := range desks {
			d.Stop()
		}
		_ = os.RemoveAll(folder) // in the directory for temporary files
	}()
	s.Parts(ctx,
		fixture.Part{Name: "a gateway that serves", Run: gatewayServes},
		fixture.Part{Name: "two counterparties log on and send orders", Run: logOn},
		fixture.Part{Name: "a wrong password is refused, and the condition says so", Run: wrongPassword},
		fixture.Part{Name: "kill -9 of the gateway", Run: killGateway},
		fixture.Part{Name: "the gateway's pod is deleted", Run: deleteGateway},
		fixture.Part{Name: "a rolling update of the gateway", Run: updateGateway},
		fixture.Part{Name: "three pods, each of them killed -9, and one again", Run: scaleGateway},
		fixture.Part{Name: "both pods of the grid are killed, one after the other", Run: killPrimaries},
		fixture.Part{Name: "each order is answered, and in the grid once", Run: judge},
		fixture.Part{Name: "the replicas' logs are equal byte for byte", Run: func(ctx context.Context, s *fixture.Fixture) { s.Verify(ctx, grid) }},
		fixture.Part{Name: "deleting the gateway leaves nothing behind", Run: deletionLeavesNothing},
	)
}

func gatewayServes(ctx context.Context, s *fixture.Fixture) {
	secrets(ctx, s)
	s.Apply(ctx, "gateway.yaml")
	serves(ctx, s)
}

func serves(ctx context.Context, s *fixture.Fixture) {
	s.Helper()
	for _, c := range []string{"Ready", "GridReachable", "SessionsLoaded"} {
		s.Condition(ctx, "ordergateway", gateway, c, "True")
	}
}

// logOn has two engines of others log on: BANK with a password, FUND with a certificate.
func logOn(ctx context.Context, s *fixture.Fixture) {
	o := address(ctx, s)
	classpath, err := quickfixj.Classpath(ctx)
	if err != nil {
		s.Fatal(err)
	}
	trust, err := quickfixj.TrustStore(ctx, folder, o.CA)
	if err != nil {
		s.Fatal(err)
	}
	open := func(d *desk.Desk, err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
		desks = append(desks, d)
	}
	open(desk.QuickFIXJ(classpath, quickfixj.Options{BeginString: "FIX.4.4", Sender: "BANK", Target: "GRID", Addresses: []string{o.Address}, User: "bank", Password: password, TrustStore: trust, Pace: pace}))
	o.BeginString, o.Sender, o.Cert, o.Key = "FIX.4.2", "FUND", filepath.Join(folder, "fund.crt"), filepath.Join(folder, "fund.key")
	open(desk.QuickFIXGo(o, pace))
	more(ctx, s, 200)
}

// wrongPassword is refused by name, while the others send orders.
func wrongPassword(ctx context.Context, s *fixture.Fixture) {
	o := address(ctx, s)
	o.BeginString, o.Sender, o.User, o.Password = "FIX.4.4", "OLD", "old", "of-last-year"
	i, err := counterparty.Start(o)
	if err != nil {
		s.Fatal(err)
	}
	defer i.Stop()
	text := s.Condition(ctx, "ordergateway", gateway, "SessionsRefused", "True")
	if !strings.Contains(text, "CredentialsWrong") || !strings.Contains(text, "OLD") {
		s.Errorf("the condition does not say whose password is wrong: %s", text)
	}
	if strings.Contains(text, o.Password) || strings.Contains(text, password) {
		s.Errorf("the condition has a password: %s", text)
	}
	if err := i.Wait(time.Second, func(seen counterparty.Seen) bool { return seen.Logons > 0 }); err == nil {
		s.Error("a counterparty with a wrong password logged on")
	}
}

// killGateway ends the process without a word. The kubelet starts it again in the same pod.
func killGateway(ctx context.Context, s *fixture.Fixture) {
	before := logons()
	pids := processes()
	if len(pids) != 1 {
		s.Fatalf("processes of the gateway on this machine: %v, want one; the suite needs a local cluster", pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	again(ctx, s, before)
	if n := s.Must(s.Kube.Run(ctx, "get", "pods", "-n", namespace, "-l", "ordergrid.dev/gateway="+gateway, "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")); n != "1" {
		s.Errorf("restarts of the gateway's container: %q, want 1", n)
	}
}

// deleteGateway ends it the ordinary way: sessions are logged out as their orders are answered.
func deleteGateway(ctx context.Context, s *fixture.Fixture) {
	before := logons()
	s.Must(s.Kube.Run(ctx, "delete", "pods", "-n", namespace, "-l", "ordergrid.dev/gateway="+gateway, "--wait"))
	again(ctx, s, before)
}

// updateGateway changes the pods' template: the next pod has to be ready before this one logs its sessions out.
func updateGateway(ctx context.Context, s *fixture.Fixture) {
	before := logons()
	s.Must(s.Kube.Run(ctx, "patch", "ordergateway", gateway, "-n", namespace, "--type=merge", "-p", `{"spec":{"resources":{"requests":{"cpu":"50m","memory":"128Mi"},"limits":{"memory":"512Mi"}}}}`))
	s.Must(s.Kube.Run(ctx, "rollout", "status", "deployment/"+gateway+"-gateway", "-n", namespace, "--timeout=4m"))
	s.Eventually(ctx, "one pod, of the new template", fixture.Patience, func(ctx context.Context) error {
		out, err := s.Kube.Run(ctx, "get", "pods", "-n", namespace, "-l", "ordergrid.dev/gateway="+gateway, "-o", "jsonpath={.items[*].spec.containers[*].resources.limits.memory}")
		if err == nil && out != "512Mi" {
			err = errors.New(out)
		}
		return err
	})
	again(ctx, s, before)
}

// scaleGateway has three pods, kills each, and has one again: the sessions of the others log out there, and on at the one.
func scaleGateway(ctx context.Context, s *fixture.Fixture) {
	before := logons()
	scale(ctx, s, 3)
	pids := processes()
	if len(pids) != 3 {
		s.Fatalf("processes of the gateway on this machine: %v, expected three", pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			s.Fatal(err)
		}
		more(ctx, s, 100)
	}
	again(ctx, s, before)
	scale(ctx, s, 1)
	more(ctx, s, 100)
	serves(ctx, s)
}

// scale has so many pods of the gateway.
func scale(ctx context.Context, s *fixture.Fixture, pods int) {
	s.Helper()
	s.Must(s.Kube.Run(ctx, "scale", "ordergateway", gateway, "-n", namespace, "--replicas="+strconv.Itoa(pods)))
	s.Eventually(ctx, fmt.Sprintf("%d pods", pods), fixture.Patience, func(ctx context.Context) error {
		out, err := s.Kube.Run(ctx, "get", "ordergateway", gateway, "-n", namespace, "-o", "jsonpath={.status.replicas} {.status.readyReplicas}")
		if want := fmt.Sprintf("%d %d", pods, pods); err == nil && out != want {
			err = fmt.Errorf("replicas and those ready: %s, expected %s", out, want)
		}
		return err
	})
	s.Eventually(ctx, fmt.Sprintf("%d processes", pods), fixture.Patience, func(context.Context) error {
		if pids := processes(); len(pids) != pods {
			return fmt.Errorf("%v", pids)
		}
		return nil
	})
}

// killPrimaries kills both pods of the grid, one after the other: whichever leads the partition of a session, it is killed.
func killPrimaries(ctx context.Context, s *fixture.Fixture) {
	for ordinal := range 2 {
		s.Must(s.Kube.Run(ctx, "delete", "pod", fmt.Sprintf("%s-s0-%d", grid, ordinal), "-n", namespace, "--grace-period=0", "--force"))
		more(ctx, s, 200)
		s.Condition(ctx, "ordergrid", grid, "Redundant", "True")
		serves(ctx, s)
		more(ctx, s, 200)
	}
}

// again waits until each desk has logged on again, with orders answered since, and the gateway reports that it serves.
func again(ctx context.Context, s *fixture.Fixture, before []int) {
	s.Helper()
	s.Eventually(ctx, "each counterparty logs on again", fixture.Patience, func(context.Context) error {
		for i, n := range logons() {
			if n <= before[i] {
				return fmt.Errorf("%s has logged on %d times", desks[i].Name, n)
			}
		}
		return nil
	})
	more(ctx, s, 100)
	serves(ctx, s)
}

// more waits until each desk has so many more orders answered.
func more(ctx context.Context, s *fixture.Fixture, orders int) {
	s.Helper()
	begin := make([]int, len(desks))
	for i, d := range desks {
		begin[i] = d.State().Answered
	}
	s.Eventually(ctx, fmt.Sprintf("%d more orders of each counterparty", orders), fixture.Patience, func(context.Context) error {
		for i, d := range desks {
			if now := d.State(); now.Answered-begin[i] < orders {
				return fmt.Errorf("%d more; %s", now.Answered-begin[i], now.Trouble)
			}
		}
		return nil
	})
}

func logons() (list []int) {
	for _, d := range desks {
		list = append(list, d.State().Logons)
	}
	return list
}

func deletionLeavesNothing(ctx context.Context, s *fixture.Fixture) {
	s.Must(s.Kube.Run(ctx, "delete", "ordergateway", gateway, "-n", namespace, "--wait"))
	// Those of the suite, and the certificate that the grid issued, which no rule names any more: it goes with the grid.
	stay := []string{"secret/street-fix", "secret/street-passwords", "secret/" + grid + ".tls-gateway-" + gateway}
	s.Eventually(ctx, "nothing of the gateway", fixture.Patience, func(ctx context.Context) error {
		out, err := s.Kube.Run(ctx, "get", "deployments,replicasets,pods,services,endpointslices,poddisruptionbudgets,serviceaccounts,networkpolicies,secrets", "-n", namespace, "-o", "name")
		var left []string
		for name := range strings.FieldsSeq(out) {
			if strings.Contains(name, gateway) && !slices.Contains(stay, name) {
				left = append(left, name)
			}
		}
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %v", left)
		}
		return err
	})
}

// processes of the gateway among those of this machine, where the nodes of a local cluster run.
func processes() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), program) || !strings.Contains(string(text), "."+namespace+".svc") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// address of the gateway's Service, with what its certificate is checked by.
func address(ctx context.Context, s *fixture.Fixture) counterparty.Options {
	s.Helper()
	ip := s.Must(s.Kube.Run(ctx, "get", "service", gateway+"-gateway", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"))
	return counterparty.Options{Address: net.JoinHostPort(ip, "7440"), Target: "GRID", CA: filepath.Join(folder, "ca.crt"), Name: serverName}
}
