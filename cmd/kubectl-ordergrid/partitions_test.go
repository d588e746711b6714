package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func clientKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// statusPage is a node's /status with both partitions.
func statusPage(pod, role0, seq0, role1, seq1 string) string {
	part := func(p, role, seq string) string {
		return `{"record":"trades-p` + p + `","role":"` + role + `","lastSeq":` + seq + `,"commitSeq":` + seq + `}`
	}
	return `{"grid":"trades","pod":"` + pod + `","bootID":"00000000000000aa","partitions":[` + part("0", role0, seq0) + "," + part("1", role1, seq1) + `]}`
}

func TestPartitions(t *testing.T) {
	s := newStage(t)
	s.pods()
	out, err := s.run("partitions", "trades", "--nodes=false", "-o", "wide")
	s.want(out, err, 0, "PARTITION  PRIMARY      PREFERRED    EPOCH  IN SYNC  COMMITTED  LAG  COPIES",
		"trades-p0  trades-s0-0  trades-s0-0  2      2/2      ?          ?    trades-s0-0 unknown+, trades-s0-1 unknown+  0      -      -     1        10.0.0.1:7400\n")

	s.nodeAt("127.0.71.1", "trades-s0-0", map[string]string{"/status": statusPage("trades-s0-0", "primary", "40", "backup", "7")})
	out, err = s.run("partitions", "trades", "--direct")
	s.want(out, err, 0, "2/2      40         ?    trades-s0-0 primary+, trades-s0-1 unreachable+\n", "trades-s0-1: the pod does not run\n")

	s.nodeAt("127.0.71.2", "trades-s0-1", map[string]string{"/status": statusPage("trades-s0-1", "backup", "38", "primary", "5")})
	out, err = s.run("partitions", "trades", "--direct", "-o", "json")
	var rows []partitionRow
	if err != nil || json.Unmarshal([]byte(out), &rows) != nil || len(rows) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := rows[0]; *r.Lag != 2 || *r.CommitSeq != 40 || r.Copies[1].Role != "backup" || *r.Copies[1].Lag != 2 || r.Copies[1].InSync != "Yes" {
		t.Errorf("%s", out)
	}
	if *rows[1].Lag != 0 { // the backup was read later than the primary, and is ahead of its report
		t.Errorf("%s", out)
	}
	s.configure("trades-p0", member(0, "00000000000000aa"))
	out, err = s.run("partitions", "trades", "--direct")
	s.want(out, err, 0, "1/2      40         2    trades-s0-0 primary+, trades-s0-1 backup\n")
	if strings.Contains(out, "\x1b") {
		t.Errorf("colours without a terminal:\n%q", out)
	}
}

// TestPlaceOfAPartition: its shard, and its move.
func TestPlaceOfAPartition(t *testing.T) {
	for want, pods := range map[string][]string{
		"2":     {"trades-s2-0", "trades-s2-1"},
		"0>2":   {"trades-s0-0", "trades-s0-1", "trades-s2-0"},
		"0+1>2": {"trades-s1-0", "trades-s0-1", "trades-s2-0"},
		"1>2":   {"trades-s1-0"},
	} {
		p := &api.GridPartition{Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "trades"}, Shard: 2}}
		for _, pod := range pods {
			p.Status.InSync = append(p.Status.InSync, api.Member{PodName: pod})
		}
		r := rowOf(p, nil, false)
		if got := r.place().text; got != want {
			t.Errorf("in sync on %v: %q, want %q", pods, got, want)
		}
		for _, pod := range pods {
			if !slices.ContainsFunc(r.Copies, func(c copyRow) bool { return c.Pod == pod }) {
				t.Errorf("copies %+v are without %s", r.Copies, pod)
			}
		}
	}
}
