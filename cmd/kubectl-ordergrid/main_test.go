package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client/verify"
)

func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestUsageErrorsSayWhatIsAllowed(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"verify"}, "0 arguments, allowed: the name of one OrderGrid"},
		{[]string{"status", "a", "b"}, "2 arguments"},
		{[]string{"verify", "g", "--output", "yaml"}, `value "yaml", allowed: text, json`},
		{[]string{"verify", "g", "--partition", "s0p1"}, `partition is "s0p1", allowed: p<number>`},
		{[]string{"verify", "g", "--nonsense"}, "unknown flag: --nonsense"},
	} {
		_, err := run(tc.args...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want a usage error with %q", tc.args, err, tc.want)
		}
	}
}

func TestNoCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status", "verify"} {
		if _, err := run(command, "g", "--kubeconfig", file); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
			t.Errorf("%s: error %v", command, err)
		}
	}
}

func TestUnreachableEndpointIsNotADifference(t *testing.T) {
	_, err := run("verify", "g", "--endpoint", "127.0.0.1:1", "--timeout", "300ms")
	var code exitError
	if err == nil || errors.As(err, &code) && int(code) == verify.ExitDifferent {
		t.Fatalf("error %v", err)
	}
}

func TestWriteStatus(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	og := &v1alpha1.OrderGrid{}
	og.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", Reason: "Serving", Message: "2 of 2 partitions serve", LastTransitionTime: metav1.NewTime(now.Add(-90 * time.Second))}}
	og.Status.Partitions = []v1alpha1.PartitionSummary{{Name: "trades-p0"}, {Name: "trades-p1", Problem: "NotClaimed"}}
	claimed, fresh := v1alpha1.GridPartition{}, v1alpha1.GridPartition{}
	claimed.Name, fresh.Name = "trades-p0", "trades-p1"
	claimed.Spec = v1alpha1.GridPartitionSpec{Partition: 0, Replicas: 2}
	at := metav1.NewTime(now.Add(-time.Hour))
	a := v1alpha1.Member{PodName: "trades-s0-0"}
	claimed.Status = v1alpha1.GridPartitionStatus{Epoch: 4, Lineage: 1, Primary: &a, InSync: []v1alpha1.Member{a, {PodName: "trades-s0-1"}}, ObservedTime: &at}
	fresh.Spec = v1alpha1.GridPartitionSpec{Partition: 1, Replicas: 2}
	var out bytes.Buffer
	if err := writeStatus(&out, og, []v1alpha1.GridPartition{claimed, fresh}, view{now: now}); err != nil {
		t.Fatal(err)
	}
	want := `CONDITION  STATUS  SINCE  REASON   MESSAGE
Available  True    90s    Serving  2 of 2 partitions serve

PARTITION  PRIMARY      IN SYNC                  WANTED  EPOCH  LINEAGE  CHANGED  PROBLEM
trades-p0  trades-s0-0  trades-s0-0,trades-s0-1  2       4      1        60m ago  none
trades-p1  none                                  2       0      0        never    NotClaimed
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
