package ordergrid

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// callbackGrid names functions of all kinds, two of which have one name.
func callbackGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Callbacks = &api.CallbacksSpec{StampTag: 10002, Pre: []api.CallbackReference{{Name: "fat-finger"}, {Name: "enrich-client"}}, Post: []api.CallbackReference{{Name: "audit-trail"}}, Compute: []api.CallbackReference{{Name: "audit-trail"}, {Name: "add"}}}
	grid.Spec.Regions = regionGrid().Spec.Regions
	return grid
}

// callbacksGiven are its functions, with and without all that may be left out.
func callbacksGiven() given {
	return given{Stamp: 10002, Functions: []givenFunction{
		{Kind: api.FunctionPre, Name: "fat-finger", Files: "f1", SHA256: strings.Repeat("a", 64), ConfigSHA256: strings.Repeat("b", 64), Fuel: 100_000, MemoryPages: 16, OnError: "Reject"},
		{Kind: api.FunctionPre, Name: "enrich-client", Files: "f2", SHA256: strings.Repeat("c", 64), Fuel: 20_000, MemoryPages: 32, Tags: []int32{10001, 1}, OnError: "Pass"},
		{Kind: api.FunctionPost, Name: "audit-trail", Files: "f3", SHA256: strings.Repeat("e", 64), ConfigSHA256: strings.Repeat("f", 64), Fuel: 50_000, MemoryPages: 8},
		{Kind: api.FunctionCompute, Name: "audit-trail", Files: "f4", SHA256: strings.Repeat("7", 64), ConfigSHA256: strings.Repeat("8", 64), Fuel: 1_000_000, MemoryPages: 64},
		{Kind: api.FunctionCompute, Name: "add", Files: "f5", SHA256: strings.Repeat("9", 64), Fuel: 100_000, MemoryPages: 16},
	}}
}

// calling is a healthy grid whose pods run with its functions, and whose logs have them in force.
func calling() *observation {
	o := healthy()
	o.grid.Spec.Callbacks = callbackGrid().Spec.Callbacks
	o.functions = &functions{given: callbacksGiven()}
	for i := range o.pods {
		o.pods[i].Spec.Containers = []corev1.Container{{Name: containerName, Args: append([]string{"serve"}, o.functions.given.args()...)}}
		o.pods[i].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	o.roomAsked, o.room.known = true, true
	o.room.posts = nodestatus.Posts{InForce: []nodestatus.PostInForce{{Name: "audit-trail", SHA256: strings.Repeat("e", 64), ConfigSHA256: strings.Repeat("f", 64), Fuel: 50_000, Pages: 8, Partitions: o.wantPartitions()}}}
	return o
}

func TestFunctionsLoaded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation)
		want   string
		text   string
	}{
		"no functions":              {func(o *observation) { o.grid.Spec.Callbacks = nil }, "/", ""},
		"all":                       {func(*observation) {}, "True/Loaded", "all 2 pods run with the functions fat-finger, enrich-client, audit-trail, audit-trail, add"},
		"not looked at":             {func(o *observation) { o.functions = nil }, "Unknown/NotLooked", ""},
		"another module":            {func(o *observation) { o.functions.given.Functions[1].SHA256 = strings.Repeat("d", 64) }, "False/NotLoaded", "2 of 2 pods do not run with the functions of spec.callbacks: rtd-s0-0, rtd-s0-1"},
		"another module to compute": {func(o *observation) { o.functions.given.Functions[4].SHA256 = strings.Repeat("d", 64) }, "False/NotLoaded", "2 of 2 pods do not run with the functions of spec.callbacks: rtd-s0-0, rtd-s0-1"},
		"one less to compute":       {func(o *observation) { o.functions.given.Functions = o.functions.given.Functions[:4] }, "False/NotLoaded", "2 of 2"},
		"one less":                  {func(o *observation) { o.functions.given.Functions = o.functions.given.Functions[1:] }, "False/NotLoaded", "2 of 2"},
		"no stamp":                  {func(o *observation) { o.functions.given.Stamp = 0 }, "False/NotLoaded", "2 of 2"},
		"the other order": {func(o *observation) {
			p := o.functions.given.Functions
			p[0], p[1] = p[1], p[0]
		}, "False/NotLoaded", "2 of 2"},
		"first with functions": {func(o *observation) { o.pods[1].Spec.Containers[0].Args = []string{"serve"} }, "False/NotLoaded", "1 of 2 pods do not run with the functions of spec.callbacks: rtd-s0-1"},
		"refused by the node": {func(o *observation) {
			o.pods[0].Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: containerName, Started: ptr.To(false),
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "--function-pre: fat-finger: the module has sha256 12"}}}
		}, "False/NotLoaded", "the module has sha256 12"},
		"starts":                   {func(o *observation) { o.pods[0].Status.ContainerStatuses[0].Started = nil }, "False/NotLoaded", "1 of 2"},
		"a pod missing":            {func(o *observation) { o.pods = o.pods[:1] }, "False/NotLoaded", "1 of 2"},
		"not in force":             {func(o *observation) { o.room.posts.InForce[0].Partitions-- }, "False/OnTheWay", "function audit-trail is in force in the logs of"},
		"in force with other fuel": {func(o *observation) { o.room.posts.InForce[0].Fuel++ }, "False/OnTheWay", "in the logs of 0 of"},
		"a log waits":              {func(o *observation) { o.room.posts.Waiting = []string{"p1"} }, "False/OnTheWay", ": p1"},
		"nodes silent":             {func(o *observation) { o.room.known = false }, "Unknown/NodesSilent", ""},
		"only pre": {func(o *observation) {
			o.functions.given.Functions, o.roomAsked = o.functions.given.Functions[:2], false
			for i := range o.pods {
				o.pods[i].Spec.Containers[0].Args = o.functions.given.args()
			}
		}, "True/Loaded", "fat-finger, enrich-client"},
		"kept": {func(o *observation) {
			o.functions.reason, o.functions.troubles, o.functions.held = reasonFunctionInvalid, []string{"GridFunction enrich-client is not Valid: too long"}, true
		}, "False/FunctionInvalid", "too long. The pods go on with what they were given: fat-finger, enrich-client, audit-trail"},
		"one to compute left out": {func(o *observation) {
			f := o.functions
			f.given.Functions, f.reason, f.troubles = f.given.Functions[:4], reasonFunctionNotFound, []string{"there is no GridFunction add"}
			for i := range o.pods {
				o.pods[i].Spec.Containers[0].Args = f.given.args()
			}
		}, "False/FunctionNotFound", "there is no GridFunction add. The pods are given: fat-finger, enrich-client, audit-trail, audit-trail"},
		"a new grid, only to compute": {func(o *observation) {
			*o.functions = functions{reason: reasonFunctionNotFound, troubles: []string{"there is no GridFunction add"}}
			o.pods = nil
		}, "False/FunctionNotFound", "there is no GridFunction add. The pods are given: none"},
		"a new grid": {func(o *observation) {
			*o.functions = functions{held: true, reason: reasonFunctionNotFound, troubles: []string{"there is no GridFunction fat-finger"}}
			o.pods = nil
		}, "False/FunctionNotFound", "There are no pods until"},
	} {
		t.Run(name, func(t *testing.T) {
			j := judgeFunctions(changed(calling(), c.change))
			if got := string(j.status) + "/" + j.reason; got != c.want || !strings.Contains(j.message, c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.want, c.text)
			}
		})
	}
}

// TestFunctionsOfStrippedPods: what the cache keeps of a pod is enough to tell its functions, in each stage of TLS.
func TestFunctionsOfStrippedPods(t *testing.T) {
	g := callbacksGiven()
	for name, args := range map[string][]string{
		"plain": {"serve"}, "TLS": {"serve", flagCert, "x"}, "outside": {"serve", flagCert, "x", flagExternal, ":7401"}, "accept": append([]string{"serve"}, transitionArgs(stageAccept)...),
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: containerName, Args: args}}}}
		stage := stageOf(&p.Spec)
		without, err := StripPod(p)
		if err != nil || !hasArgs(without.(*corev1.Pod), nil) || hasArgs(without.(*corev1.Pod), g.args()) {
			t.Errorf("%s, without functions: %v, %v", name, without, err)
		}
		p.Spec.Containers[0].Args = append(slices.Clone(args), g.args()...)
		with, err := StripPod(p)
		if err != nil || !hasArgs(with.(*corev1.Pod), g.args()) || hasArgs(with.(*corev1.Pod), nil) {
			t.Errorf("%s, with functions: %v, %v", name, with, err)
		}
		if s := stageOf(&with.(*corev1.Pod).Spec); s != stage {
			t.Errorf("%s: the stage of TLS is %v, was %v", name, s, stage)
		}
		a, _ := listensOutside(&p.Spec)
		if b, _ := listensOutside(&with.(*corev1.Pod).Spec); a != b {
			t.Errorf("%s: listens outside %v, did %v", name, b, a)
		}
	}
}

// TestFunctionEvents: what has to be mended is a warning, and a roll is none.
func TestFunctionEvents(t *testing.T) {
	for reason, want := range map[string]string{reasonFunctionInvalid: "Warning FunctionInvalid", reasonFunctionNotFound: "Warning FunctionNotFound",
		reasonNotLoaded: "", reasonFunctionsOnTheWay: "", reasonFunctionUnchecked: "", reasonLoaded: "Normal FunctionsLoaded"} {
		c := metav1.Condition{Type: api.ConditionFunctionsLoaded, Status: metav1.ConditionFalse, Reason: reason}
		if reason == reasonLoaded {
			c.Status = metav1.ConditionTrue
		}
		got := ""
		for _, e := range conditionEvents(nil, []metav1.Condition{c}, false) {
			got += e.kind + " " + e.reason
		}
		if got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
