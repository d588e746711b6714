package failoverdrill

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// TestRecorderArguments: the program accepts its command line.
func TestRecorderArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("builds order-probe: run it without -short")
	}
	program := testgrid.Program(t, "order-probe")
	d := under("").drill
	spec, err := plan.ResolveSuite(&api.FailoverDrillSpec{Suite: api.SuitePullThePlug})
	if err != nil {
		t.Fatal(err)
	}
	d.Spec.Traffic = spec.Traffic
	grid := &api.OrderGrid{Spec: api.OrderGridSpec{Replicas: 2}}
	grid.Name = "rtd"
	grid.Spec.Sinks = []api.SinkSpec{{Name: "audit", Type: api.SinkFile}}
	steps := []plan.Step{{Fault: api.DrillFault{Name: "kill", Type: api.FaultContainerKill}}}
	if line := strings.Join(recorderArgs(d, grid, steps), " "); strings.Contains(line, "--no-sink") {
		t.Errorf("the files of a container outlive it, but are not compared: %s", line)
	}
	steps = append(steps, plan.Step{Fault: api.DrillFault{Name: "delete", Type: api.FaultPodDelete}})
	args := recorderArgs(d, grid, steps)
	if line := strings.Join(args, " "); !strings.Contains(line, "--no-sink the files of sink audit are on EmptyDir volumes, which go with the pods that delete replaces") {
		t.Errorf("the files of deleted pods are gone, but are compared: %s", line)
	}
	if line := strings.Join(args, " "); !strings.Contains(line, "--endpoint rtd-client.trading.svc:7400 --grid rtd --replicas 2") || !strings.Contains(line, "--rate 3000") {
		t.Errorf("arguments %s", line)
	}
	d.Spec.Traffic.Announce = &api.DrillAnnouncement{Address: "desk-gateway:7441", SecretName: "announcer"}
	d.Name = "nightly.v2"
	args = recorderArgs(d, grid, steps)
	if line := strings.Join(args, " "); !strings.Contains(line, "--announce wss://desk-gateway:7441 --announce-name nightly-v2 --announce-token-file /etc/ordergrid/announce/token --announce-ca /etc/ordergrid/announce/ca.crt") {
		t.Errorf("arguments %s", line)
	}
	if out, err := exec.CommandContext(t.Context(), program, append(args, "--help")...).CombinedOutput(); err != nil || !strings.Contains(string(out), "Run the recorder") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRecorderPod: it has no permissions, is never replaced, and avoids machines that a drill breaks.
func TestRecorderPod(t *testing.T) {
	o := under("")
	grid := &api.OrderGrid{}
	grid.Name = "rtd"
	job := recorderJob(o.drill, grid, o.plan, []string{"a", "b"}, testDefaults)
	pod := job.Spec.Template.Spec
	c := pod.Containers[0]
	if *job.Spec.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever || *pod.AutomountServiceAccountToken || c.Image != testDefaults.Image || !*c.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("%+v", job.Spec)
	}
	if e := c.Env[0]; e.Name != recorder.TokenVariable || e.ValueFrom.SecretKeyRef.Name != "nightly-recorder" {
		t.Errorf("%+v", c.Env)
	}
	if v := pod.Volumes[1]; v.Projected.Sources[0].Secret.Name != "nightly-recorder" || c.VolumeMounts[1].Name != v.Name || !slices.Contains(c.Args, c.VolumeMounts[1].MountPath+"/tls.key") {
		t.Errorf("it has no credentials: %+v, %+v, %v", pod.Volumes, c.VolumeMounts, c.Args)
	}
	o.drill.Spec.Traffic.Announce = &api.DrillAnnouncement{Address: "desk-gateway:7441", SecretName: "announcer"}
	pod = recorderJob(o.drill, grid, o.plan, []string{"a", "b"}, testDefaults).Spec.Template.Spec
	if v, m := pod.Volumes[2], pod.Containers[0].VolumeMounts[2]; v.Secret.SecretName != "announcer" || !*v.Secret.Optional || m.Name != v.Name || m.MountPath != announceMount || !m.ReadOnly {
		t.Errorf("it cannot announce the drill: %+v, %+v", v, m)
	}
	if pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		t.Error("it must avoid machines although none is broken")
	}
	grid.Spec.Fabric = &api.FabricSpec{Network: api.NetworkReference{Name: "ib"}, Interface: "fabric0"}
	if recorderJob(o.drill, grid, o.plan, nil, testDefaults).Spec.Template.Annotations[api.AnnotationNetworks] == "" {
		t.Error("the recorder is not on the network of its grid, whose addresses it submits orders to")
	}
	o.plan[0].Fault.Type = api.FaultNodePowerOff
	a := recorderJob(o.drill, grid, o.plan, []string{"a", "b"}, testDefaults).Spec.Template.Spec.Affinity
	if a.NodeAffinity == nil || len(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields) != 2 {
		t.Errorf("a machine is powered off, and the recorder may be on it: %+v", a)
	}
	if a.PodAntiAffinity != nil {
		t.Error("the recorder keeps replacement pods of the grid off its machine")
	}
}
