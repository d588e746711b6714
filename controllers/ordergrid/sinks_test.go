package ordergrid

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

func claimSink(name string) api.SinkSpec {
	return api.SinkSpec{Name: name, Type: api.SinkFile, File: &api.FileSinkSpec{Volume: api.SinkVolumeClaim, Size: resource.MustParse("20Gi")}}
}

// TestConversionToSinks: a grid that changes from spec.writeBehind to spec.sinks keeps its pods and their claims.
func TestConversionToSinks(t *testing.T) {
	for name, file := range map[string]*api.FileSinkSpec{"claim": claimSink("file").File, "directory": {Volume: api.SinkVolumeEmptyDir, Size: resource.MustParse("2Gi")}, "default": nil} {
		before, after := pairGrid(), pairGrid()
		before.Spec.WriteBehind = api.WriteBehindSpec{Sink: api.WriteBehindFile, File: file}
		before.Status.Sinks = []api.SinkStatus{{Name: "file"}}
		after.Spec.Sinks, after.Status = []api.SinkSpec{{Name: "file", Type: api.SinkFile, File: file}}, before.Status
		set := func(g *api.OrderGrid) any { return statefulSet(g, 0, 2, pod(g, 0, testDefaults)) }
		if !reflect.DeepEqual(set(before), set(after)) {
			t.Errorf("%s: the StatefulSet changes\nfrom %+v\nto   %+v", name, set(before), set(after))
		}
	}
}

// TestSinkContent: the pod of a sink writes executions where it is to.
func TestSinkContent(t *testing.T) {
	grid := pairGrid()
	kafka, db := api.SinkSpec{Name: "bus", Type: api.SinkKafka, Kafka: &api.KafkaSinkSpec{Topic: "{grid}.orders"}}, api.SinkSpec{Name: "db", Type: api.SinkPostgreSQL, Postgres: &api.PostgresSinkSpec{}}
	args := func() string {
		return strings.Join(slices.Concat(kafkaArgs(grid, &kafka), postgresArgs(grid, &db)), " ")
	}
	if got := args(); strings.Contains(got, "executions") {
		t.Errorf("orders only: %s", got)
	}
	kafka.Content, db.Content = api.SinkOrdersAndExecutions, api.SinkOrdersAndExecutions
	if got := args(); !strings.Contains(got, "--executions-topic "+grid.Name+".executions ") || !strings.HasSuffix(got, " --executions") {
		t.Errorf("with executions: %s", got)
	}
	kafka.Content, db.Content = api.SinkExecutions, api.SinkExecutions
	if got := args(); !strings.Contains(got, " --only-executions --key ") || strings.Contains(got, "--topic") || !strings.Contains(got, "--executions-topic "+grid.Name+".executions ") || !strings.HasSuffix(got, " --only-executions") {
		t.Errorf("executions alone: %s", got)
	}
	kafka.Kafka.ExecutionsTopic = "fills.{grid}"
	if got := args(); !strings.Contains(got, "--executions-topic fills."+grid.Name+" ") {
		t.Errorf("with a topic: %s", got)
	}
}

// TestSinksOfPods: what each sink adds to a pod, and that nodes are given the names of removed ones.
func TestSinksOfPods(t *testing.T) {
	grid := pairGrid()
	args := func() string { return strings.Join(sinkArgs(grid), " ") }
	if got := args(); got != "--sink hold" {
		t.Errorf("without sinks: %s", got)
	}
	directory := func(name string) api.SinkSpec { return api.SinkSpec{Name: name, Type: api.SinkFile} }
	grid.Spec.Sinks = []api.SinkSpec{claimSink("file"), directory("desk"), claimSink("audit")}
	const all = "--sink file --sink-dir /var/lib/ordergrid/sink --file-sink audit=/var/lib/ordergrid/sinks/audit --file-sink desk=/var/lib/ordergrid/sinks/desk"
	if got := args(); got != all {
		t.Errorf("three sinks: %s", got)
	}
	set := statefulSet(grid, 0, 2, pod(grid, 0, testDefaults))
	var claims, volumes, mounts []string
	for _, c := range set.Spec.VolumeClaimTemplates {
		claims = append(claims, c.Name)
	}
	for _, v := range set.Spec.Template.Spec.Volumes {
		if strings.HasPrefix(v.Name, "sink") {
			volumes = append(volumes, v.Name+" "+v.EmptyDir.SizeLimit.String())
		}
	}
	for _, m := range set.Spec.Template.Spec.Containers[0].VolumeMounts {
		if strings.HasPrefix(m.Name, "sink") {
			mounts = append(mounts, m.Name+" "+m.MountPath)
		}
	}
	if got := strings.Join(slices.Concat(claims, volumes, mounts), ", "); got != "sink-audit, sink, sink-desk 1Gi, sink-audit /var/lib/ordergrid/sinks/audit, sink-desk /var/lib/ordergrid/sinks/desk, sink /var/lib/ordergrid/sink" {
		t.Errorf("claims, volumes and mounts: %s", got)
	}

	grid.Spec.Sinks = append(grid.Spec.Sinks, api.SinkSpec{Name: "kafka", Type: api.SinkExternal})
	if got := args(); got != all+" --external-sink kafka" {
		t.Errorf("with one outside: %s", got)
	}
	if with := statefulSet(grid, 0, 2, pod(grid, 0, testDefaults)); len(with.Spec.VolumeClaimTemplates) != len(claims) || len(with.Spec.Template.Spec.Volumes) != len(set.Spec.Template.Spec.Volumes) {
		t.Errorf("a sink outside has volumes: %+v", with.Spec.Template.Spec.Volumes)
	}
	grid.Spec.Sinks = grid.Spec.Sinks[:3]

	grid.Status.Sinks = []api.SinkStatus{{Name: "audit"}, {Name: "desk"}, {Name: "file"}, {Name: "new"}}
	grid.Status.RemovedSinks = []string{"old", "desk"} // desk was added again before the operator saw its removal
	if got, want := args(), all+" --removed-sink old,new"; got != want {
		t.Errorf("removed ones:\n got %s\nwant %s", got, want)
	}
	grid.Spec.Sinks, grid.Status = grid.Spec.Sinks[1:2], api.OrderGridStatus{Sinks: []api.SinkStatus{{Name: "file"}}}
	if got := args(); got != "--sink hold --file-sink desk=/var/lib/ordergrid/sinks/desk" {
		t.Errorf("file was removed: %s", got)
	}
}

// TestForgetSinks: a name stays while a log may have it, and a few more, so that no pod is replaced for it.
func TestForgetSinks(t *testing.T) {
	names := strings.Fields("a b c d e f g h i j")
	for _, test := range []struct {
		inLogs string
		all    bool
		want   string
	}{
		{"", false, "a b c d e f g h i j"},
		{"", true, "c d e f g h i j"},
		{"a c", true, "a c e f g h i j"},
		{"a b c d e f g h i", true, "a b c d e f g h i"},
	} {
		if got := strings.Join(forgetSinks(slices.Clone(names), strings.Fields(test.inLogs), test.all), " "); got != test.want {
			t.Errorf("logs have %q, all answered %t: %s, want %s", test.inLogs, test.all, got, test.want)
		}
	}
	if got := forgetSinks(strings.Fields("a b"), nil, true); len(got) != 2 {
		t.Errorf("few are kept: %v", got)
	}
}

// TestSinksOfAGrid: the partition with the largest lag counts, a failing one before all, and the result is coarse.
func TestSinksOfAGrid(t *testing.T) {
	memory := func(pod string, readers string, sinks ...nodestatus.Sink) *nodestatus.Memory {
		return &nodestatus.Memory{Grid: "rtd", Pod: pod, Sinks: sinks, Readers: strings.Fields(readers)}
	}
	r := roomOf([]*nodestatus.Memory{
		memory("a", "audit gone", nodestatus.Sink{Name: "audit", Partition: "p0", LagSeconds: 45}, nodestatus.Sink{Name: "file", Partition: "p0", LagSeconds: 9}),
		memory("b", "audit", nodestatus.Sink{Name: "audit", Partition: "p1", LagSeconds: 4000}, nodestatus.Sink{Name: "desk", Partition: "p1", LagSeconds: 700}),
		memory("c", "audit", nodestatus.Sink{Name: "desk", Partition: "p2", LagSeconds: 3, Error: "disk full"}),
	}, 4)
	text := func(list []api.SinkStatus) (lines []string) {
		for _, s := range list {
			lag := "-"
			if s.Lag != nil {
				lag = s.Lag.Duration.String()
			}
			lines = append(lines, strings.TrimSpace(s.Name+" "+lag+" "+s.Partition+" "+s.LastError))
		}
		return lines
	}
	if got, want := text(r.sinks), []string{"audit 1h0m0s p1", "desk - p2 disk full", "file -"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !slices.Equal(r.readers, []string{"audit", "gone"}) || r.all {
		t.Errorf("the logs have %v, all pods answered: %t; one has not", r.readers, r.all)
	}

	o := &observation{grid: pairGrid(), room: r, roomAsked: true}
	o.grid.Spec.Sinks = []api.SinkSpec{{Name: "desk", Type: api.SinkFile}, {Name: "new", Type: api.SinkFile}}
	status := &o.grid.Status
	status.Sinks = []api.SinkStatus{{Name: "audit"}, {Name: "desk", LastError: "of before"}}
	o.sinkStatus(status)
	if got := text(status.Sinks); !slices.Equal(got, []string{"desk - p2 disk full", "new -"}) || !slices.Equal(status.RemovedSinks, []string{"audit"}) || status.SinkNames != "desk,new" {
		t.Errorf("status has %q, removed %v", got, status.RemovedSinks)
	}
	o.roomAsked = false // another operator
	o.sinkStatus(status)
	if got := text(status.Sinks); !slices.Equal(got, []string{"desk - p2 disk full", "new -"}) {
		t.Errorf("an operator that has just started reports %q", got)
	}
}
