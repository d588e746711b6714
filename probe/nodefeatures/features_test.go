package nodefeatures

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		want  []Name
	}{
		{Fault{Kind: "PodChaos", Action: "pod-kill"}, nil},
		{Fault{Kind: "PodChaos", Action: "container-kill"}, nil},
		{Fault{Kind: "NetworkChaos", Action: "partition"}, []Name{IPTables}},
		{Fault{Kind: "NetworkChaos", Action: "partition", Peers: true}, []Name{IPTables, IPSet}},
		{Fault{Kind: "NetworkChaos", Action: "bandwidth"}, []Name{IPTables, TBF}},
		{Fault{Kind: "NetworkChaos", Action: "delay"}, []Name{IPTables, Netem}},
		{Fault{Kind: "NetworkChaos", Action: "loss", Peers: true}, []Name{IPTables, Netem, IPSet, Prio}},
		{Fault{Kind: "StressChaos"}, []Name{Stress}},
		{Fault{Kind: "TimeChaos"}, []Name{Time}},
		{Fault{Kind: "IOChaos", Action: "latency"}, []Name{Fuse}},
		{Fault{Kind: "NetworkChaos", Action: "teleport"}, Names()},
		{Fault{Kind: "KernelChaos"}, Names()},
		{Fault{}, Names()},
	} {
		if got := c.fault.Needs(); !slices.Equal(got, c.want) {
			t.Errorf("%v needs %v, want %v", c.fault, got, c.want)
		}
	}
}

func TestLacks(t *testing.T) {
	r := &Report{Node: "n1", Kernel: "6.1", Features: map[Name]Feature{IPTables: {Supported: true}, Netem: {Reason: "the kernel has none"}}}
	if l := r.Lacks(Fault{Kind: "NetworkChaos", Action: "partition"}); len(l) != 0 {
		t.Errorf("a partition lacks %v", l)
	}
	l := r.Lacks(Fault{Kind: "NetworkChaos", Action: "delay", Peers: true})
	if len(l) != 3 || l[0].Feature != Netem || l[1].Reason != "not in the report" {
		t.Fatalf("a delay lacks %+v", l)
	}
	for _, part := range []string{"n1", "6.1", "netem", "the kernel has none", "sch_netem"} {
		if !strings.Contains(l[0].String(), part) {
			t.Errorf("%q does not contain %q", l[0], part)
		}
	}
	if l := (&Report{}).Lacks(Fault{Kind: "TimeChaos"}); len(l) != 1 {
		t.Errorf("an empty report lacks %v for a TimeChaos", l)
	}
}

func TestEveryFeatureHasARemedy(t *testing.T) {
	for _, name := range Names() {
		if remedies[name] == "" || Purpose(name) == "" {
			t.Errorf("%s has remedy %q and purpose %q", name, remedies[name], Purpose(name))
		}
	}
	if len(Names()) != 11 {
		t.Errorf("%d features: %v", len(Names()), Names())
	}
}

// The controller reads back what the node wrote, and it fits a termination message.
func TestJSON(t *testing.T) {
	r := Report{Node: strings.Repeat("n", 253), Kernel: strings.Repeat("6", 64), Arch: "amd64", Features: map[Name]Feature{}}
	for _, name := range Names() {
		r.Features[name] = Feature{Reason: "the kernel has no queueing discipline prio; the kernel has no queueing discipline sfq"}
	}
	b, err := json.Marshal(r)
	if err != nil || len(b) > 4096 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || back.Features[Prio] != r.Features[Prio] || back.Node != r.Node {
		t.Errorf("came back as %+v, %v", back, err)
	}
}
