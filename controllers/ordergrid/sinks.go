package ordergrid

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// keepRemoved is how many names of removed sinks stay on the pods' command lines although no log has them any more:
// removing one would replace every pod.
const keepRemoved = 8

// sinkVolume is the volume of a file sink, and its claim template. That of the sink called file is the one of grids
// with spec.writeBehind.
func sinkVolume(name string) string {
	if name == api.SinkNameFile {
		return "sink"
	}
	return "sink-" + name
}

// sinkDir is its mount path.
func sinkDir(name string) string {
	if name == api.SinkNameFile {
		return "/var/lib/ordergrid/sink"
	}
	return "/var/lib/ordergrid/sinks/" + name
}

// sinkArgs configure the sinks of a grid node, and its removed ones.
func sinkArgs(grid *api.OrderGrid) []string {
	args := []string{"--sink", "hold"}
	sinks := grid.Sinks()
	if slices.ContainsFunc(sinks, func(s api.SinkSpec) bool { return s.Name == api.SinkNameFile }) {
		args = []string{"--sink", "file", "--sink-dir", sinkDir(api.SinkNameFile)}
	}
	for i := range sinks {
		switch s := &sinks[i]; {
		case s.Outside():
			args = append(args, "--external-sink", s.Name)
		case s.Name != api.SinkNameFile:
			args = append(args, "--file-sink", s.Name+"="+sinkDir(s.Name))
		}
	}
	if removed := removedSinks(grid); len(removed) > 0 {
		args = append(args, "--removed-sink", strings.Join(removed, ","))
	}
	return args
}

// removedSinks are the names of sinks that the grid had, the latest last. The sink called file is never among them: a
// node without it does not need its position.
func removedSinks(grid *api.OrderGrid) (names []string) {
	sinks := grid.Sinks()
	add := func(name string) {
		has := func(s api.SinkSpec) bool { return s.Name == name }
		if name != api.SinkNameFile && !slices.Contains(names, name) && !slices.ContainsFunc(sinks, has) {
			names = append(names, name)
		}
	}
	for _, name := range grid.Status.RemovedSinks {
		add(name)
	}
	for i := range grid.Status.Sinks {
		add(grid.Status.Sinks[i].Name)
	}
	return names
}

// forgetSinks drops the oldest names of removed sinks, beyond those that are kept, that no log has any more according
// to every node.
func forgetSinks(names []string, inLogs []string, allReported bool) []string {
	for i := 0; i < len(names) && len(names) > keepRemoved && allReported; {
		if slices.Contains(inLogs, names[i]) {
			i++
		} else {
			names = slices.Delete(names, i, i+1)
		}
	}
	return names
}

// sinkStatus is the present and removed sinks of the pods, and the progress of each.
func (o *observation) sinkStatus(status *api.OrderGridStatus) {
	status.RemovedSinks = forgetSinks(removedSinks(o.grid), o.room.readers, o.roomAsked && o.room.all)
	known := status.Sinks // this operator may have just started
	if o.roomAsked {
		known = o.room.sinks
	}
	sinks := o.grid.Sinks()
	var list []api.SinkStatus
	var names []string
	for i := range sinks {
		status := api.SinkStatus{Name: sinks[i].Name}
		if at := slices.IndexFunc(known, func(s api.SinkStatus) bool { return s.Name == status.Name }); at >= 0 {
			status = known[at]
		}
		status.Reason = o.sinkReason(&sinks[i])
		list, names = append(list, status), append(names, status.Name)
	}
	status.Sinks, status.SinkNames = list, strings.Join(names, ",")
}

// sinkMounts of the grid node's container.
func sinkMounts(grid *api.OrderGrid) (list []corev1.VolumeMount) {
	for _, s := range grid.FileSinks() {
		list = append(list, corev1.VolumeMount{Name: sinkVolume(s.Name), MountPath: sinkDir(s.Name)})
	}
	return list
}

// sinkVolumes of the pod; a PersistentVolumeClaim comes from the StatefulSet's claim templates instead.
func sinkVolumes(grid *api.OrderGrid) (list []corev1.Volume) {
	for _, s := range grid.FileSinks() {
		if !s.HasClaim() {
			list = append(list, corev1.Volume{Name: sinkVolume(s.Name), VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &s.File.Size},
			}})
		}
	}
	return list
}

// claimSinks adds the claims of the sinks to a shard's StatefulSet.
func claimSinks(grid *api.OrderGrid, shard int32, set *appsv1.StatefulSet) {
	for _, s := range grid.FileSinks() {
		if s.HasClaim() {
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claim(grid, shard, sinkVolume(s.Name), s.File.StorageClassName, s.File.Size))
			set.Spec.PersistentVolumeClaimRetentionPolicy = retention(s.File.WhenDeleted) // of all claims: the API server enforces it
		}
	}
}

func claim(grid *api.OrderGrid, shard int32, name string, class *string, size resource.Quantity) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		// A claim template is immutable: it carries the selector's labels, which never change, and no others.
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: shardSelector(grid, shard)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

func retention(whenDeleted api.ClaimPolicy) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	policy := &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	if whenDeleted == api.ClaimDelete {
		policy.WhenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return policy
}

// capacityAdvice is the remedy for a full grid.
func capacityAdvice(grid *api.OrderGrid) string {
	switch {
	case grid.Spec.Retention.Policy == api.RetentionFreeDownstream:
		return "Only what every sink holds is freed: check which one lags (status.sinks; kubectl ordergrid top, column SINK), or raise spec.memory"
	case slices.ContainsFunc(grid.Sinks(), func(s api.SinkSpec) bool { return s.OutlivesPods() }):
		return "spec.retention.policy KeepAll frees nothing: set FreeDownstream, or raise spec.memory"
	}
	return "spec.retention.policy KeepAll frees nothing, and FreeDownstream needs a sink that outlives the pods: add one of type Kafka, PostgreSQL, Archive or External to spec.sinks, or raise spec.memory"
}

// sinkSteps are the lags in status, which is written when the next one is reached.
var sinkSteps = []time.Duration{24 * time.Hour, 8 * time.Hour, 2 * time.Hour, time.Hour, 30 * time.Minute, 10 * time.Minute, 5 * time.Minute,
	2 * time.Minute, time.Minute, 30 * time.Second, 10 * time.Second}

// sinksOf summarizes the sinks reported by a grid's pods, by name, and which sinks have a position in a log.
func sinksOf(answers []*nodestatus.Memory) (sinks []api.SinkStatus, readers []string) {
	worst := map[string]nodestatus.Sink{}
	for _, m := range answers {
		readers = append(readers, m.Readers...)
		for _, s := range m.Sinks {
			if w, found := worst[s.Name]; !found || cmp.Or(cmp.Compare(min(len(s.Error), 1), min(len(w.Error), 1)), cmp.Compare(s.LagSeconds, w.LagSeconds), cmp.Compare(w.Partition, s.Partition)) > 0 {
				worst[s.Name] = s
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(worst)) {
		w := worst[name]
		s := api.SinkStatus{Name: name, LastError: messages.Cut(w.Error, 512)}
		for _, step := range sinkSteps {
			if s.Lag == nil && w.LagSeconds >= step.Seconds() {
				s.Lag = &metav1.Duration{Duration: step}
			}
		}
		if s.Lag != nil || s.LastError != "" {
			s.Partition = w.Partition
		}
		sinks = append(sinks, s)
	}
	slices.Sort(readers)
	return sinks, slices.Compact(readers)
}
