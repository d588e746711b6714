package inject

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Every object the injector can build, on the cluster's network and on another one, is accepted by the API server with
// Chaos Mesh's own schemas, where an unknown field is an error.
func TestTheAPIServerAcceptsEveryObject(t *testing.T) {
	b := newBench(t)
	made := map[string]bool{}
	for _, device := range []string{"", "net1"} {
		for _, f := range everyFault() {
			f.Drill.Namespace = b.namespace
			objects, err := chaosObjects(f, onPlane(device, "g-s0-0", "g-s0-1"))
			if err != nil || len(objects) == 0 {
				t.Errorf("%s on %q: %d objects, %v", f.Spec.Type, device, len(objects), err)
			}
			for _, o := range objects {
				action, _ := o.Object["spec"].(map[string]any)["action"].(string)
				made[o.GetKind()+" "+action] = true
				if err := b.client.Create(t.Context(), o.DeepCopy(), client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
					spec, _ := json.Marshal(o.Object["spec"])
					t.Errorf("%s on %q: %v\n%s", f.Spec.Type, device, err, spec)
				}
			}
		}
	}
	for _, want := range []string{"PodChaos pod-kill", "PodChaos pod-failure", "PodChaos container-kill", "NetworkChaos partition", "NetworkChaos delay", "NetworkChaos loss",
		"NetworkChaos duplicate", "NetworkChaos corrupt", "NetworkChaos bandwidth", "TimeChaos ", "StressChaos ", "IOChaos latency", "IOChaos fault"} {
		if !made[want] {
			t.Errorf("no %s was created", want)
		}
	}
}

// A schema that accepts everything would make the test above worthless.
func TestTheAPIServerRefusesWhatTheSchemaDoesNotKnow(t *testing.T) {
	b := newBench(t)
	for name, spoil := range map[string]func(spec map[string]any){
		"an unknown field":  func(s map[string]any) { s["latency"] = "1ms" },
		"an unknown action": func(s map[string]any) { s["action"] = "dely" },
		"no latency":        func(s map[string]any) { s["delay"] = map[string]any{"jitter": "1ms"} },
		"two units":         func(s map[string]any) { s["delay"] = map[string]any{"latency": "1m30s"} },
	} {
		f := fault(api.DrillFault{Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: lasts(1e6)}}, "g-s0-0").with("g-s0-1")
		f.Drill.Namespace = b.namespace
		objects, err := chaosObjects(f, onPlane("", "g-s0-0", "g-s0-1"))
		if err != nil {
			t.Fatal(err)
		}
		spoil(objects[0].Object["spec"].(map[string]any))
		if err := b.client.Create(t.Context(), objects[0], client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err == nil || !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// spec of the only object, as JSON.
func specOf(t *testing.T, f *Fault, s *surroundings) string {
	t.Helper()
	objects, err := chaosObjects(f, s)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, o := range objects {
		content, err := json.Marshal(o.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.GetName()+" "+string(content))
	}
	return strings.Join(all, "\n")
}

func TestObjects(t *testing.T) {
	delay := api.DrillFault{Type: api.FaultNetworkDelay, Network: &api.NetworkFault{Latency: lasts(5e6)}}
	from := delay
	from.Network = &api.NetworkFault{Latency: lasts(5e6), Direction: api.DirectionFrom}
	for name, c := range map[string]struct {
		fault *Fault
		on    *surroundings
		want  string
	}{
		"exact names, not labels": {fault(api.DrillFault{Type: api.FaultPodKill}, "g-s0-1"), onPlane(""),
			`night-7 {"action":"pod-kill","gracePeriod":0,"mode":"all","selector":{"pods":{"trading":["g-s0-1"]}}}`},
		"both ways on the cluster's network": {fault(delay, "g-s0-0").with("g-s0-1"), onPlane("", "g-s0-0", "g-s0-1"),
			`night-7 {"action":"delay","delay":{"correlation":"0","latency":"5000us"},"direction":"both","duration":"1m10s","mode":"all","selector":{"pods":{"trading":["g-s0-0"]}},"target":{"mode":"all","selector":{"pods":{"trading":["g-s0-1"]}}}}`},
		"both ways on another network: an object each, by addresses there": {fault(delay, "g-s0-0").with("g-s0-1"), onPlane("net1", "g-s0-0", "g-s0-1"),
			`night-7-to {"action":"delay","delay":{"correlation":"0","latency":"5000us"},"device":"net1","direction":"to","duration":"1m10s","externalTargets":["192.168.7.2"],"mode":"all","selector":{"pods":{"trading":["g-s0-0"]}}}
night-7-from {"action":"delay","delay":{"correlation":"0","latency":"5000us"},"device":"net1","direction":"to","duration":"1m10s","externalTargets":["192.168.7.1"],"mode":"all","selector":{"pods":{"trading":["g-s0-1"]}}}`},
		"one way on another network": {fault(from, "g-s0-0").with("g-s0-1"), onPlane("net1", "g-s0-0", "g-s0-1"),
			`night-7-from {"action":"delay","delay":{"correlation":"0","latency":"5000us"},"device":"net1","direction":"to","duration":"1m10s","externalTargets":["192.168.7.1"],"mode":"all","selector":{"pods":{"trading":["g-s0-1"]}}}`},
		"partition on another network": {fault(api.DrillFault{Type: api.FaultNetworkPartition}, "g-s0-0").with("g-s0-1"), onPlane("net1", "g-s0-0", "g-s0-1"),
			`night-7 {"action":"partition","device":"net1","direction":"both","duration":"1m10s","externalTargets":["192.168.7.2"],"mode":"all","selector":{"pods":{"trading":["g-s0-0"]}}}`},
		"from everything": {fault(api.DrillFault{Type: api.FaultNetworkPartition}, "g-s0-0"), onPlane("", "g-s0-0"),
			`night-7 {"action":"partition","direction":"both","duration":"1m10s","mode":"all","selector":{"pods":{"trading":["g-s0-0"]}}}`},
		"from the API server": {fault(api.DrillFault{Type: api.FaultAPIServerPartition}, "g-s0-0"), onPlane("net1", "g-s0-0"),
			`night-7 {"action":"partition","direction":"to","duration":"1m10s","externalTargets":["10.96.0.1","10.89.0.1:6443"],"mode":"all","selector":{"pods":{"trading":["g-s0-0"]}}}`},
		"bandwidth": {fault(api.DrillFault{Type: api.FaultNetworkBandwidth, Network: &api.NetworkFault{Rate: "1G", Direction: api.DirectionTo}}, "g-s0-0"), onPlane("", "g-s0-0"),
			`night-7 {"action":"bandwidth","bandwidth":{"buffer":1250000,"limit":7500000,"rate":"1000000000bit"},"direction":"to","duration":"1m10s","mode":"all","selector":{"pods":{"trading":["g-s0-0"]}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := specOf(t, c.fault, c.on); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestWhatCannotBeAskedFor(t *testing.T) {
	on := onPlane("", "g-s0-0", "g-s0-1")
	mixed := onPlane("net1", "g-s0-0")
	mixed.planes["g-s0-1"] = Plane{Address: mixed.planes["g-s0-0"].Address}
	network := func(typ api.DrillFaultType, n *api.NetworkFault) *Fault {
		return fault(api.DrillFault{Type: typ, Network: n}, "g-s0-0")
	}
	for name, c := range map[string]struct {
		fault *Fault
		on    *surroundings
		says  string
	}{
		"no pod":                        {fault(api.DrillFault{Type: api.FaultPodKill}), on, "hits no pod"},
		"a node fault":                  {fault(api.DrillFault{Type: api.FaultNodePowerOff}, "g-s0-0"), on, "has no fault NodePowerOff"},
		"both ways without peers":       {network(api.FaultNetworkLoss, &api.NetworkFault{Loss: "1%"}), on, "set direction: To"},
		"from without peers":            {network(api.FaultNetworkLoss, &api.NetworkFault{Loss: "1%", Direction: api.DirectionFrom}), on, "set direction: To"},
		"no latency":                    {network(api.FaultNetworkDelay, nil).with("g-s0-1"), on, "network.latency"},
		"no rate":                       {network(api.FaultNetworkBandwidth, &api.NetworkFault{}).with("g-s0-1"), on, "network.rate"},
		"no loss":                       {network(api.FaultNetworkLoss, nil).with("g-s0-1"), on, "network.loss"},
		"two interfaces":                {network(api.FaultNetworkPartition, nil).with("g-s0-1"), mixed, `interface "net1"`},
		"an unknown interface":          {network(api.FaultNetworkPartition, nil).with("g-s0-9"), on, "is not known"},
		"no offset":                     {fault(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{}}, "g-s0-0"), on, "clock.offset is 0s"},
		"no workers":                    {fault(api.DrillFault{Type: api.FaultCPUStress}, "g-s0-0"), on, "cpuWorkers"},
		"half a percent of a core":      {fault(api.DrillFault{Type: api.FaultIOError, IO: &api.IOFault{Percent: "0.4%"}}, "g-s0-0"), on, "1% to 100%"},
		"no sink":                       {fault(api.DrillFault{Type: api.FaultIOError}, "g-s0-0"), &surroundings{}, "a sink of type File"},
		"neither delay nor errno":       {fault(api.DrillFault{Type: api.FaultIODelay, IO: &api.IOFault{}}, "g-s0-0"), on, "io.delay"},
		"an API server without address": {fault(api.DrillFault{Type: api.FaultAPIServerPartition}, "g-s0-0"), &surroundings{}, "has no address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chaosObjects(c.fault, c.on)
			if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want a permanent error with %q", err, c.says)
			}
		})
	}
}

// Names and labels are how the objects are found again.
func TestNames(t *testing.T) {
	for _, f := range everyFault() {
		objects, err := chaosObjects(f, onPlane("net1", "g-s0-0", "g-s0-1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if l := o.GetLabels(); l[LabelDrill] != "night" || l[LabelDrillUID] != string(f.Drill.UID) || !strings.HasPrefix(o.GetName(), "night-7") || o.GetNamespace() != "trading" {
				t.Errorf("%s: %s/%s %v", f.Spec.Type, o.GetNamespace(), o.GetName(), l)
			}
			if _, lasts := o.Object["spec"].(map[string]any)["duration"]; lasts == f.Spec.Type.Momentary() {
				t.Errorf("%s: duration is set: %v", f.Spec.Type, lasts)
			}
		}
	}
}
