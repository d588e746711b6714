package inject

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func chaosObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\n"+text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const created = "metadata: {name: night-7, namespace: trading, creationTimestamp: '2026-11-21T11:59:55Z'}\n"

// The statuses are of the form that Chaos Mesh's controllers write.
func TestReadChaos(t *testing.T) {
	conditions := func(selected, injected, recovered, paused string) string {
		return "conditions: [{type: Selected, status: '" + selected + "'}, {type: AllInjected, status: '" + injected + "'}, {type: AllRecovered, status: '" + recovered + "'}, {type: Paused, status: '" + paused + "'}]"
	}
	failing := func(message string) string {
		return `experiment: {desiredPhase: Run, containerRecords: [{id: trading/g-s0-0, selectorKey: ., phase: Not Injected/Wait, injectedCount: 0, recoveredCount: 0, events: [
  {type: Failed, operation: Apply, message: '` + message + `', timestamp: '2026-11-21T11:59:56Z'},
  {type: Failed, operation: Apply, message: '` + message + `', timestamp: '2026-11-21T11:59:57Z'},
  {type: Failed, operation: Apply, message: '` + message + `', timestamp: '2026-11-21T11:59:59Z'}]}]}`
	}
	for name, c := range map[string]struct {
		text  string
		phase Phase
		says  string
		ended bool
	}{
		"just created":    {created, Pending, "not injected yet", false},
		"not found yet":   {created + "status: {" + conditions("False", "False", "False", "False") + ", experiment: {desiredPhase: Run}}", Pending, "not injected yet", false},
		"no pod selected": {strings.Replace(created, "11:59:55", "11:59:05", 1) + "status: {experiment: {}}", Failed, "found no pod", false},
		"waiting": {created + "status: {" + conditions("True", "False", "False", "False") + `, experiment: {desiredPhase: Run, containerRecords: [{id: trading/g-s0-0, selectorKey: ., phase: Not Injected/Wait}]}}`,
			Pending, "not injected yet", false},
		"injected": {created + "status: {" + conditions("True", "True", "False", "False") + `, experiment: {desiredPhase: Run, containerRecords: [{id: trading/g-s0-0, selectorKey: ., phase: Injected}, {id: trading/g-s0-1, selectorKey: .Target, phase: Injected}]}}`,
			Injected, "into trading/g-s0-0, trading/g-s0-1", false},
		"paused by a user": {created + "status: {" + conditions("True", "False", "True", "True") + `, experiment: {desiredPhase: Stop, containerRecords: [{id: a/b, phase: Not Injected}]}}`,
			Pending, "remove it", false},
		"its time is over": {created + "status: {" + conditions("True", "False", "True", "False") + `, experiment: {desiredPhase: Stop, containerRecords: [{id: a/b, phase: Not Injected}]}}`,
			Gone, "duration is over", true},
		"being recovered": {created + "status: {" + conditions("True", "False", "False", "False") + `, experiment: {desiredPhase: Stop, containerRecords: [{id: a/b, phase: Injected/Wait}]}}`,
			Recovering, "being recovered", true},
		"deleted": {"metadata: {name: night-7, namespace: trading, deletionTimestamp: '2026-11-21T11:59:55Z'}\nstatus: {" + conditions("True", "True", "False", "False") + "}",
			Recovering, "being deleted", false},
		"a failure that may pass": {created + "status: {" + failing("failed to apply for pod trading/g-s0-0: rpc error: connection refused") + "}", Pending, "connection refused", false},
		"one failure of the kernel": {created + `status: {experiment: {desiredPhase: Run, containerRecords: [{id: a/b, phase: Not Injected/Wait, events: [{type: Failed, operation: Apply, message: unable to set tcs for pod b, timestamp: '2026-11-21T11:59:59Z'}]}]}}`,
			Pending, "unable to set tcs", false},
		"a kernel without netem": {created + "status: {" + failing("failed to apply for pod trading/g-s0-0: unable to set tcs for pod g-s0-0") + "}", Failed, "sch_netem", false},
		"a daemon without toda":  {created + "status: {" + failing("rpc error: exec: \"stress-ng\": executable file not found in $PATH") + "}", Failed, "image of Chaos Mesh", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := readChaos(chaosObject(t, c.text), noon)
			if err != nil || s.Phase != c.phase || s.Ended != c.ended || !strings.Contains(s.Message, c.says) || !strings.Contains(s.Message, "night-7") {
				t.Errorf("%+v, %v; want %s, ended %v, with %q", s, err, c.phase, c.ended, c.says)
			}
		})
	}
}

// A status is written by others and may be invalid.
func TestHostileStatus(t *testing.T) {
	for _, text := range []string{"status: 7", "status: {conditions: {}}", "status: {experiment: {containerRecords: [{events: [{timestamp: yesterday}]}]}}", "status: [1]"} {
		if s, err := readChaos(chaosObject(t, created+text), noon); err == nil || !strings.Contains(err.Error(), "night-7") {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
	long := chaosObject(t, created+"status: {experiment: {containerRecords: [{id: a/b, phase: Not Injected/Wait, events: [{type: Failed, operation: Apply, timestamp: '2026-11-21T11:59:59Z', message: '"+strings.Repeat("é", 5000)+"'}]}]}}")
	if s, err := readChaos(long, noon); err != nil || len(s.Message) > 500 {
		t.Errorf("%d bytes, %v", len(s.Message), err)
	}
	for _, text := range []string{"status: {experiment: {containerRecords: [null, {}]}}", "status: {}", "status: null"} {
		if s, err := readChaos(chaosObject(t, created+text), noon); err != nil || s.Phase != Pending {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

func FuzzReadChaos(f *testing.F) {
	f.Add(`{"conditions":[{"type":"AllInjected","status":"True"}],"experiment":{"desiredPhase":"Run","containerRecords":[{"id":"a/b","phase":"Injected","events":[{"type":"Failed","operation":"Apply","message":"unable to set tcs","timestamp":"2026-11-21T11:59:59Z"}]}]}}`)
	f.Add(`[]`)
	f.Fuzz(func(_ *testing.T, status string) {
		var content any
		if yaml.Unmarshal([]byte(status), &content) != nil {
			return
		}
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "NetworkChaos", "status": content}}
		_, _ = readChaos(o, noon) // must not panic
	})
}

// A fault of two objects is in place once both are, and gone once both are.
func TestWorst(t *testing.T) {
	for _, c := range []struct {
		of   []Phase
		want Phase
	}{
		{nil, Gone}, {[]Phase{Injected}, Injected}, {[]Phase{Injected, Pending}, Pending}, {[]Phase{Gone, Injected}, Injected},
		{[]Phase{Recovering, Injected}, Recovering}, {[]Phase{Pending, Failed, Injected}, Failed}, {[]Phase{Gone, Gone}, Gone},
	} {
		var states []State
		for _, p := range c.of {
			states = append(states, State{Phase: p, Message: string(p)})
		}
		if got := worst(states); got.Phase != c.want {
			t.Errorf("%v: %s, want %s", c.of, got.Phase, c.want)
		}
	}
}
