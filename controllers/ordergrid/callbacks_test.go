package ordergrid

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// callbackGrid has functions with and without all that may be left out.
func callbackGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Callbacks = &api.CallbacksSpec{StampTag: 10002, Pre: []api.PreCallback{
		{Name: "fat-finger", Module: api.PinnedFile{ConfigMapName: "functions", Key: "fat-finger.wasm", SHA256: strings.Repeat("a", 64)},
			Config: &api.PinnedFile{ConfigMapName: "limits", Key: "equities.txt", SHA256: strings.Repeat("b", 64)}, Fuel: 100_000, MemoryPages: 16, OnError: api.CallbackReject},
		{Name: "enrich-client", Module: api.PinnedFile{ConfigMapName: "functions", Key: "enrich-client.wasm", SHA256: strings.Repeat("c", 64)},
			Fuel: 20_000, MemoryPages: 32, Tags: []int32{10001, 1}, OnError: api.CallbackPass},
	}, Post: []api.PostCallback{
		{Name: "audit-trail", Module: api.PinnedFile{ConfigMapName: "functions", Key: "audit-trail.wasm", SHA256: strings.Repeat("e", 64)},
			Config: &api.PinnedFile{ConfigMapName: "limits", Key: "audit.txt", SHA256: strings.Repeat("f", 64)}, Fuel: 50_000, MemoryPages: 8},
	}}
	return grid
}

// calling is a healthy grid whose pods run with its functions.
func calling() *observation {
	o := healthy()
	o.grid.Spec.Callbacks = callbackGrid().Spec.Callbacks
	for i := range o.pods {
		o.pods[i].Spec.Containers = []corev1.Container{container(o.grid, 0, testDefaults)}
		o.pods[i].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Started: ptr.To(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	return o
}

func TestFunctionsLoaded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation)
		want   string
		text   string
	}{
		"no functions":   {func(o *observation) { o.grid.Spec.Callbacks = nil }, "/", ""},
		"all":            {func(*observation) {}, "True/Loaded", "all 2 pods run with the functions fat-finger, enrich-client, audit-trail"},
		"another module": {func(o *observation) { o.grid.Spec.Callbacks.Pre[1].Module.SHA256 = strings.Repeat("d", 64) }, "False/NotLoaded", "2 of 2 pods do not run with the functions of spec.callbacks: rtd-s0-0, rtd-s0-1"},
		"one less":       {func(o *observation) { o.grid.Spec.Callbacks.Pre = o.grid.Spec.Callbacks.Pre[:1] }, "False/NotLoaded", "2 of 2"},
		"no post":        {func(o *observation) { o.grid.Spec.Callbacks.Post = nil }, "False/NotLoaded", "2 of 2"},
		"only post": {func(o *observation) {
			o.grid.Spec.Callbacks.Pre, o.grid.Spec.Callbacks.StampTag = nil, 0
			for i := range o.pods {
				o.pods[i].Spec.Containers = []corev1.Container{container(o.grid, 0, testDefaults)}
			}
		}, "True/Loaded", "functions audit-trail"},
		"no stamp": {func(o *observation) { o.grid.Spec.Callbacks.StampTag = 0 }, "False/NotLoaded", "2 of 2"},
		"the other order": {func(o *observation) {
			p := o.grid.Spec.Callbacks.Pre
			p[0], p[1] = p[1], p[0]
		}, "False/NotLoaded", "2 of 2"},
		"first with functions": {func(o *observation) {
			grid := pairGrid()
			o.pods[1].Spec.Containers = []corev1.Container{container(grid, 0, testDefaults)}
		}, "False/NotLoaded", "1 of 2 pods do not run with the functions of spec.callbacks: rtd-s0-1"},
		"refused by the node": {func(o *observation) {
			o.pods[0].Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: containerName, Started: ptr.To(false),
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "--function-pre: fat-finger: the module has sha256 12"}}}
		}, "False/NotLoaded", "the module has sha256 12"},
		"starts":        {func(o *observation) { o.pods[0].Status.ContainerStatuses[0].Started = nil }, "False/NotLoaded", "1 of 2"},
		"a pod missing": {func(o *observation) { o.pods = o.pods[:1] }, "False/NotLoaded", "1 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			j := judgeFunctions(changed(calling(), c.change))
			if got := string(j.status) + "/" + j.reason; got != c.want || !strings.Contains(j.message, c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.want, c.text)
			}
		})
	}
}
