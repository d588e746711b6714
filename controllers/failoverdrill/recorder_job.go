package failoverdrill

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/controllers/workload"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

const (
	dataVolume = "history"
	dataMount  = "/history"

	// identityVolume has the recorder's certificate and key.
	identityVolume = "identity"
	identityMount  = "/etc/ordergrid/recorder"

	// announceVolume has what the recorder proves itself to a stream gateway with.
	announceVolume = "announce"
	announceMount  = "/etc/ordergrid/announce"
	announceToken  = "token"

	// patience bounds the wait for one copy or sink that does not answer at the end; finishLimit bounds all of them.
	patience = 2 * time.Minute
)

// recorderJob runs the recorder: one pod that is never replaced, because its ledger is in its memory.
func recorderJob(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step, taken []string, defaults Defaults) *batchv1.Job {
	job := workload.Job(drillMeta(d, recorderName(d)), 1, recorderPod(d, grid, steps, taken, defaults))
	objects.AttachNetwork(&job.Spec.Template, grid)
	certificates.Attach(&job.Spec.Template, grid)
	return job
}

func recorderPod(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step, taken []string, defaults Defaults) corev1.PodSpec {
	spec := workload.Pod(recorderContainer(d, grid, steps, defaults), d.Spec.Traffic.Placement)
	spec.AutomountServiceAccountToken = ptr.To(false) // it does not use the API server
	spec.SecurityContext = objects.RestrictedPodWithVolumes()
	spec.Affinity = awayFromGrid(d, steps, taken)
	spec.Volumes = []corev1.Volume{{Name: dataVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, *certificates.Volume(identityVolume, recorderName(d))}
	if a := d.Spec.Traffic.Announce; a != nil {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: announceVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: a.SecretName, DefaultMode: ptr.To[int32](0o440), Optional: ptr.To(true), // without it the drill is not announced, and goes on
		}}})
	}
	return spec
}

// awayFromGrid keeps the recorder off the machines of the grid where possible; always, when the drill breaks machines:
// the ledger has to survive them. Then it excludes the machines in use at its start by name: pod anti-affinity would be
// symmetric, and keep the grid's replacements off the recorder's machine.
func awayFromGrid(d *api.FailoverDrill, steps []plan.Step, taken []string) *corev1.Affinity {
	if len(taken) > 0 && slices.ContainsFunc(steps, func(p plan.Step) bool { return p.Fault.Type.OfMachine() }) {
		var elsewhere []corev1.NodeSelectorRequirement // a requirement about a field has one value
		for _, node := range taken {
			elsewhere = append(elsewhere, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}})
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: elsewhere}},
		}}}
	}
	return workload.Preferring(workload.AwayFromGrid(d.Spec.GridRef.Name))
}

func recorderContainer(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step, defaults Defaults) corev1.Container {
	t := &d.Spec.Traffic
	c := workload.Container(recorderArgs(d, grid, steps), recorder.Port)
	c.Image, c.ImagePullPolicy = cmp.Or(t.Image, defaults.Image), cmp.Or(t.ImagePullPolicy, defaults.ImagePullPolicy)
	c.Env = []corev1.EnvVar{{Name: recorder.TokenVariable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: recorderName(d)}, Key: tokenKey,
	}}}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: dataVolume, MountPath: dataMount}, {Name: identityVolume, MountPath: identityMount, ReadOnly: true}}
	if t.Announce != nil {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: announceVolume, MountPath: announceMount, ReadOnly: true})
	}
	c.Resources = workload.Resources(t.Resources, recorderMemory(d, grid, steps))
	if t.Resources == nil {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: c.Resources.Requests[corev1.ResourceMemory]}
	}
	return c
}

// recorderArgs is the command line of the recorder.
func recorderArgs(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step) []string {
	t := &d.Spec.Traffic
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	args := []string{
		"drill",
		"--endpoint", fmt.Sprintf("%s.%s.svc:%d", api.ClientServiceName(grid.Name), d.Namespace, api.DataPort),
		"--grid", grid.Name,
		"--replicas", number(grid.Spec.Replicas),
		"--probes", number(t.Probes),
		"--rate", number(ptr.Deref(t.RatePerProbe, 0)),
		"--sessions", number(t.Sessions),
		"--reads", number(ptr.Deref(t.Reads, 0)),
		"--timeout", t.RequestTimeout.Duration.String(),
		"--seed", strconv.FormatInt(d.Status.Seed, 10),
		"--patience", patience.String(),
		"--http", ":" + strconv.Itoa(recorder.Port),
		"--http-cert", path.Join(identityMount, certificates.KeyCert),
		"--http-key", path.Join(identityMount, certificates.KeyKey),
		"--http-ca", path.Join(identityMount, certificates.KeyCA),
		"--node-port", strconv.Itoa(api.HTTPPort),
		"--dir", dataMount,
		"--ttl", d.Spec.TTL.Duration.String(),
	}
	if s, err := plan.SuiteByName(d.Spec.Suite); err == nil && s.Auctions > 0 {
		args = append(args, "--auctions", s.Auctions.String())
	}
	if reason := noSink(grid, steps); reason != "" {
		args = append(args, "--no-sink", reason)
	}
	if a := t.Announce; a != nil {
		args = append(args, "--announce", "wss://"+a.Address, "--announce-name", announcedAs(d.Name),
			"--announce-token-file", path.Join(announceMount, announceToken), "--announce-ca", path.Join(announceMount, certificates.KeyCA))
	}
	return args
}

// announcedAs is the name of a drill as a token of a topic.
func announcedAs(name string) string {
	name = strings.ReplaceAll(name, ".", "-")
	return name[:min(len(name), 63)]
}

// noSink returns why the sink cannot be compared: an EmptyDir is deleted with its pod, and the next pod does not write
// its content again.
func noSink(grid *api.OrderGrid, steps []plan.Step) string {
	sink := grid.ReadableSink()
	if sink == nil || sink.HasClaim() {
		return ""
	}
	if i := slices.IndexFunc(steps, func(p plan.Step) bool { return inject.TypeOf(p.Fault.Type).ReplacesPods }); i >= 0 {
		return fmt.Sprintf("the files of sink %s are on EmptyDir volumes, which go with the pods that %s replaces; use a PersistentVolumeClaim", sink.Name, steps[i].Fault.Name)
	}
	return ""
}
