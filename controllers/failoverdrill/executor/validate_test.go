package executor

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func delay() *Fault {
	return &Fault{
		Type: NetworkDelay, Namespace: "trading", DeadlineSeconds: 60,
		Pods:       []Pod{{Name: "orders-0-1", IP: "10.1.2.3", Node: "xeon-1", UID: "3c9a-77"}},
		Peers:      []Pod{{Name: "orders-0-0", IP: "10.1.2.4"}},
		Parameters: Parameters{Latency: &metav1.Duration{Duration: 10 * time.Millisecond}},
	}
}

func powerOff() *Fault {
	return &Fault{Type: NodePowerOff, Nodes: []string{"xeon-1"}, DeadlineSeconds: 60}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  func() *Fault
		edit  func(*Fault)
		field string // of the error; empty if it is valid
	}{
		{"delay", delay, func(*Fault) {}, ""},
		{"delay of nothing measures what holding costs", delay, func(f *Fault) { f.Parameters.Latency.Duration = 0 }, ""},
		{"power off", powerOff, func(*Fault) {}, ""},
		{"outage", powerOff, func(f *Fault) { f.Type, f.Nodes = APIServerOutage, nil }, ""},
		{"all peers", delay, func(f *Fault) { f.Peers = nil }, ""},
		{"no type", delay, func(f *Fault) { f.Type = "" }, "type"},
		{"no deadline", delay, func(f *Fault) { f.DeadlineSeconds = 0 }, "deadlineSeconds"},
		{"endless", delay, func(f *Fault) { f.DeadlineSeconds = MaxDeadlineSeconds + 1 }, "deadlineSeconds"},
		{"no node", powerOff, func(f *Fault) { f.Nodes = nil }, "nodes"},
		{"node twice", powerOff, func(f *Fault) { f.Nodes = []string{"a", "a"} }, "nodes[1]"},
		{"node of another shape", powerOff, func(f *Fault) { f.Nodes = []string{"--all"} }, "nodes[0]"},
		{"outage of a node", powerOff, func(f *Fault) { f.Type = APIServerOutage }, "nodes"},
		{"power off with loss", powerOff, func(f *Fault) { f.Parameters.Loss = 3 }, "parameters"},
		{"power off with peers", powerOff, func(f *Fault) { f.Peers = delay().Peers }, "peers"},
		{"no namespace", delay, func(f *Fault) { f.Namespace = "" }, "pods"},
		{"namespace with a path", delay, func(f *Fault) { f.Namespace = "../x" }, "namespace"},
		{"no pod", delay, func(f *Fault) { f.Pods = nil }, "pods"},
		{"many pods", delay, func(f *Fault) { f.Pods = make([]Pod, MaxPods+1) }, "pods"},
		{"many peers", delay, func(f *Fault) { f.Peers = make([]Pod, MaxPods+1) }, "peers"},
		{"pod without address", delay, func(f *Fault) { f.Pods[0].IP = "" }, "pods[0].ip"},
		{"pod with an option for an address", delay, func(f *Fault) { f.Pods[0].IP = "-j ACCEPT" }, "pods[0].ip"},
		{"pod with a zone", delay, func(f *Fault) { f.Pods[0].IP = "fe80::1%eth0" }, "pods[0].ip"},
		{"pod without node", delay, func(f *Fault) { f.Pods[0].Node = "" }, "pods[0].node"},
		{"pod without UID", delay, func(f *Fault) { f.Pods[0].UID = "" }, "pods[0].uid"},
		{"pod without name", delay, func(f *Fault) { f.Pods[0].Name = "A B" }, "pods[0].name"},
		{"peer without address", delay, func(f *Fault) { f.Peers[0].IP = "pod" }, "peers[0].ip"},
		{"no latency", delay, func(f *Fault) { f.Parameters.Latency = nil }, "parameters.latency"},
		{"latency backwards", delay, func(f *Fault) { f.Parameters.Latency.Duration = -1 }, "parameters.latency"},
		{"latency of an hour", delay, func(f *Fault) { f.Parameters.Latency.Duration = time.Hour }, "parameters.latency"},
		{"jitter over latency", delay, func(f *Fault) { f.Parameters.Jitter = &metav1.Duration{Duration: time.Second} }, "parameters.jitter"},
		{"delay with loss", delay, func(f *Fault) { f.Parameters.Loss = 1 }, "parameters.loss"},
		{"loss with latency", delay, func(f *Fault) { f.Type = NetworkLoss }, "parameters.latency"},
		{"loss of nothing", delay, func(f *Fault) { f.Type, f.Parameters = NetworkLoss, Parameters{} }, "parameters.loss"},
		{"loss", delay, func(f *Fault) { f.Type, f.Parameters = NetworkLoss, Parameters{Loss: 100} }, ""},
		{"loss over all", delay, func(f *Fault) { f.Type, f.Parameters = NetworkLoss, Parameters{Loss: 100.1} }, "parameters.loss"},
		{"loss not a number", delay, func(f *Fault) { f.Type, f.Parameters = NetworkLoss, Parameters{Loss: math.NaN()} }, "parameters.loss"},
		{"duplicate", delay, func(f *Fault) { f.Type, f.Parameters = NetworkDuplicate, Parameters{Duplicate: 0.5} }, ""},
		{"corrupt as loss", delay, func(f *Fault) { f.Type, f.Parameters = NetworkCorrupt, Parameters{Loss: 1} }, "parameters.loss"},
		{"direction", delay, func(f *Fault) { f.Parameters.Direction = "both" }, "parameters.direction"},
		{"interface", delay, func(f *Fault) { f.Parameters.Interface = "data0" }, ""},
		{"interface with an option", delay, func(f *Fault) { f.Parameters.Interface = "-i" }, "parameters.interface"},
		{"loopback", delay, func(f *Fault) { f.Parameters.Interface = "lo" }, "parameters.interface"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.from()
			c.edit(f)
			err := f.Validate()
			var field *FieldError
			switch {
			case c.field == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.field != "" && !errors.As(err, &field):
				t.Errorf("error is %v, want one of field %s", err, c.field)
			case c.field != "" && field.Field != c.field:
				t.Errorf("error is of field %s, want %s: %v", field.Field, c.field, err)
			}
		})
	}
}

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{
		"trading-nightly-3-1f2e3d4c": true, "a": true, "a.b": true,
		"": false, "-a": false, "a-": false, "A": false, "a/b": false, "a b": false, "a\n": false, "..": false,
	} {
		if err := CheckID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// FuzzFault decodes and validates arbitrary requests: neither panics, and a valid fault keeps its meaning over the
// wire.
func FuzzFault(f *testing.F) {
	for _, fault := range []*Fault{delay(), powerOff()} {
		seed, err := json.Marshal(fault)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte(`{"type":"NetworkLoss","parameters":{"loss":1e400}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		fault := &Fault{}
		if json.Unmarshal(body, fault) != nil || fault.Validate() != nil {
			return
		}
		again, err := json.Marshal(fault)
		if err != nil {
			t.Fatalf("a valid fault cannot be sent: %v", err)
		}
		back := &Fault{}
		if err := json.Unmarshal(again, back); err != nil || back.Validate() != nil {
			t.Fatalf("%s: %v, %v", again, err, back.Validate())
		}
	})
}
