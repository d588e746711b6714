package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// fileSink is a sink of type File; volume "" leaves file out.
func fileSink(name string, volume api.SinkVolume) api.SinkSpec {
	s := api.SinkSpec{Name: name, Type: api.SinkFile}
	if volume != "" {
		s.File = &api.FileSinkSpec{Volume: volume}
	}
	return s
}

func onClaim(name string, change func(*api.FileSinkSpec)) api.SinkSpec {
	s := fileSink(name, api.SinkVolumeClaim)
	if change != nil {
		change(s.File)
	}
	return s
}

func createGrid(t *testing.T, cl client.Client, spec api.OrderGridSpec) *api.OrderGrid {
	t.Helper()
	spec.Security.Insecure = api.InsecureAccept
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{GenerateName: "sinks-", Namespace: "default"}, Spec: spec}
	if err := cl.Create(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Delete(t.Context(), grid) })
	return grid
}

// TestSinksInEffect: one list, wherever the manifest has the sinks.
func TestSinksInEffect(t *testing.T) {
	file := api.FileSinkSpec{Volume: api.SinkVolumeEmptyDir, Size: resource.MustParse("1Gi")}
	claim := api.FileSinkSpec{Volume: api.SinkVolumeClaim, Size: resource.MustParse("20Gi")}
	for name, test := range map[string]struct {
		spec api.OrderGridSpec
		want []api.SinkSpec
	}{
		"none":            {api.OrderGridSpec{}, nil},
		"hold":            {api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindHold}}, nil},
		"write-behind":    {api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile}}, []api.SinkSpec{{Name: "file", Type: api.SinkFile, File: &file}}},
		"its claim":       {api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile, File: &claim}}, []api.SinkSpec{{Name: "file", Type: api.SinkFile, File: &claim}}},
		"the same, named": {api.OrderGridSpec{Sinks: []api.SinkSpec{{Name: "file", Type: api.SinkFile, File: &claim}}}, []api.SinkSpec{{Name: "file", Type: api.SinkFile, File: &claim}}},
		"sorted": {api.OrderGridSpec{Sinks: []api.SinkSpec{fileSink("desk", ""), {Name: "audit", Type: api.SinkFile, File: &claim}}},
			[]api.SinkSpec{{Name: "audit", Type: api.SinkFile, File: &claim}, {Name: "desk", Type: api.SinkFile, File: &file}}},
	} {
		grid := &api.OrderGrid{Spec: test.spec}
		got := grid.Sinks()
		if !slices.EqualFunc(got, test.want, func(a, b api.SinkSpec) bool {
			return a.Name == b.Name && a.Type == b.Type && a.File.Volume == b.File.Volume && a.File.Size.Equal(b.File.Size)
		}) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestSinkUpdates: which changes of sinks a running grid accepts, and the reasons of refusals.
func TestSinkUpdates(t *testing.T) {
	cl := newClient(t)
	const (
		added   = "spec.sinks: Invalid value: a sink with a PersistentVolumeClaim is added to a running grid, whose pods were made without; use file.volume EmptyDir, or create a second OrderGrid with the sink and move the traffic"
		taken   = "spec.sinks: Invalid value: a sink with a PersistentVolumeClaim is taken from a running grid, whose pods were made with it; put it back, or create a second OrderGrid without it and move the traffic"
		changed = ".file: Invalid value: changed; the PersistentVolumeClaims of a running grid's pods stay as they were made; keep it as it was, or create a second OrderGrid and move the traffic"
		named   = "spec.sinks: Invalid value: a sink called file is added to a running grid; that name is for the sink that spec.writeBehind had, or that the grid began with; use another name"
		gone    = "spec.sinks: Invalid value: spec.writeBehind is gone, and no sink takes its place; have it in spec.sinks as {name: file, type: File} with the same file, whose PersistentVolumeClaims belong to the running pods"
		legacy  = "spec.writeBehind: Invalid value: changed; the sink and its volume belong to the running pods and cannot be exchanged; keep it as it was, or use spec.sinks, which can be given sinks while the grid runs"
	)
	sinks := func(list ...api.SinkSpec) api.OrderGridSpec { return api.OrderGridSpec{Sinks: list} }
	behind := func(f *api.FileSinkSpec) api.OrderGridSpec {
		return api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile, File: f}}
	}
	outside := func(name string) api.SinkSpec { return api.SinkSpec{Name: name, Type: api.SinkExternal} }
	postgres := func(schema string) api.SinkSpec {
		return api.SinkSpec{Name: "db", Type: api.SinkPostgreSQL, Postgres: &api.PostgresSinkSpec{URLSecret: api.SecretKey{Name: "db", Key: "url"}, Schema: schema}}
	}
	kafka := func(broker, topic string) api.SinkSpec {
		return api.SinkSpec{Name: "bus", Type: api.SinkKafka, Kafka: &api.KafkaSinkSpec{Brokers: []string{broker}, Topic: topic, Insecure: api.InsecureAccept}}
	}
	archive := func(bucket, prefix, claim string) api.SinkSpec {
		s := api.SinkSpec{Name: "cold", Type: api.SinkArchive, Archive: &api.ArchiveSinkSpec{ClaimName: claim}}
		if bucket != "" {
			s.Archive.Bucket = &api.ArchiveBucketSpec{Name: bucket, Prefix: prefix, CredentialsSecretName: "store"}
		}
		return s
	}
	const (
		elsewhere   = ".archive: Invalid value: the position of the sink is where the archive is, and that is changed; keep it, or remove the sink and add one of another name"
		otherBucket = ".archive.bucket: Invalid value: name or prefix is changed, and what was written is there; keep both. A sink can be removed, and another one added under another name"
	)
	posts := func(list ...api.SinkSpec) api.OrderGridSpec {
		return api.OrderGridSpec{Sinks: list, Callbacks: &api.CallbacksSpec{Post: []api.CallbackReference{{Name: "count"}}}}
	}
	bridged := func(grid, function string) api.SinkSpec {
		return api.SinkSpec{Name: "risk", Type: api.SinkBridge, Bridge: &api.BridgeSinkSpec{Endpoints: []string{"risk:7400"}, Grid: grid, Callback: function, Insecure: api.InsecureAccept}}
	}
	const (
		noRecords = "spec.sinks: Invalid value: a sink of type Bridge takes records of functions that spec.callbacks.post does not name; name them there, correct bridge.callback, or remove the sink"
		otherGrid = ".bridge: Invalid value: grid, region or callback is changed; the position of the sink is there, and counts for what it took; keep them, or remove the sink and add one of another name"
	)
	matching := func(content api.SinkContent) api.OrderGridSpec {
		s := postgres("")
		s.Content = content
		return api.OrderGridSpec{Sinks: []api.SinkSpec{s}, PartitionBy: api.PartitionBySymbol, Execution: &api.ExecutionSpec{Mode: api.ExecutionMatch, InstrumentsFrom: &api.InstrumentsReference{Name: "equities"}}}
	}
	fills := func(topic string) api.OrderGridSpec {
		spec := matching("")
		s := kafka("kafka:9092", "")
		s.Content, s.Kafka.ExecutionsTopic = api.SinkOrdersAndExecutions, topic
		spec.Sinks = []api.SinkSpec{s}
		return spec
	}
	const otherContent = ".content: Invalid value: %s is not what it was, %s: there would be a gap; keep it, or remove the sink and add one of another name"
	hold := api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindHold}}
	claim := &api.FileSinkSpec{Volume: api.SinkVolumeClaim}
	large := func(f *api.FileSinkSpec) { f.Size = resource.MustParse("2Gi") }
	for _, test := range []struct {
		name     string
		from, to api.OrderGridSpec
		refuse   string
	}{
		{"a directory is added", sinks(), sinks(fileSink("audit", "")), ""},
		{"beside a claim", sinks(onClaim("file", nil)), sinks(onClaim("file", nil), fileSink("audit", "")), ""},
		{"a directory is taken", sinks(fileSink("audit", ""), fileSink("desk", "")), sinks(fileSink("desk", "")), ""},
		{"a larger directory", sinks(fileSink("audit", api.SinkVolumeEmptyDir)), sinks(api.SinkSpec{Name: "audit", Type: api.SinkFile, File: &api.FileSinkSpec{Size: resource.MustParse("2Gi")}}), ""},
		{"a claim is added", sinks(fileSink("audit", "")), sinks(fileSink("audit", ""), onClaim("desk", nil)), added},
		{"a claim is added to a grid without sinks", hold, sinks(onClaim("desk", nil)), added},
		{"a claim is taken", sinks(onClaim("desk", nil), fileSink("audit", "")), sinks(fileSink("audit", "")), taken},
		{"the last claim is taken", sinks(onClaim("desk", nil)), sinks(), taken},
		{"a claim is changed", sinks(onClaim("desk", nil)), sinks(onClaim("desk", large)), changed},
		{"a directory becomes a claim", sinks(fileSink("desk", api.SinkVolumeEmptyDir)), sinks(onClaim("desk", nil)), changed},
		{"a default becomes a claim", sinks(fileSink("desk", "")), sinks(onClaim("desk", nil)), changed},
		{"a claim becomes a directory", sinks(onClaim("desk", nil)), sinks(fileSink("desk", "")), changed},
		{"file is added", sinks(fileSink("audit", "")), sinks(fileSink("audit", ""), fileSink("file", "")), named},
		{"file is added to a grid without sinks", hold, sinks(fileSink("file", "")), named},
		{"file is taken", sinks(fileSink("audit", ""), fileSink("file", "")), sinks(fileSink("audit", "")), ""},

		{"one outside is added", sinks(fileSink("audit", "")), sinks(fileSink("audit", ""), outside("kafka")), ""},
		{"one outside is taken", sinks(fileSink("audit", ""), outside("kafka")), sinks(fileSink("audit", "")), ""},
		{"a directory becomes one outside", sinks(fileSink("audit", "")), sinks(outside("audit")), "spec.sinks[0].type: Invalid value: audit was of type File, and its place in the logs is of that; keep the type, or remove the sink and add one of another name"},

		{"Kafka and PostgreSQL are added", sinks(fileSink("audit", "")), sinks(fileSink("audit", ""), postgres(""), kafka("kafka:9092", "")), ""},
		{"and taken", sinks(postgres(""), kafka("kafka:9092", "")), sinks(), ""},
		{"other brokers", sinks(kafka("kafka:9092", "")), sinks(kafka("kafka-0.kafka:9093", "{grid}.orders")), ""},
		{"another topic", sinks(kafka("kafka:9092", "")), sinks(kafka("kafka:9092", "orders")), ".kafka.topic: Invalid value: orders differs from {grid}.orders, where the position of the sink is; keep it, or remove the sink and add one of another name"},
		{"a bridge is added", posts(), posts(bridged("risk", "")), ""},
		{"and taken", posts(bridged("risk", "count")), posts(), ""},
		{"a bridge without functions", sinks(), sinks(bridged("risk", "")), noRecords},
		{"a bridge of another function", posts(), posts(bridged("risk", "audit")), noRecords},
		{"a bridge to another grid", posts(bridged("risk", "")), posts(bridged("desk", "")), otherGrid},
		{"a bridge of its function", posts(bridged("risk", "")), posts(bridged("risk", "count")), otherGrid},
		{"an archive is added", sinks(), sinks(archive("orders", "", "")), ""},
		{"and taken", sinks(archive("", "", "disk")), sinks(), ""},
		{"another bucket", sinks(archive("orders", "", "")), sinks(archive("fills", "", "")), otherBucket},
		{"another prefix", sinks(archive("orders", "a", "")), sinks(archive("orders", "b", "")), otherBucket},
		{"no prefix any more", sinks(archive("orders", "a", "")), sinks(archive("orders", "", "")), otherBucket},
		{"another claim", sinks(archive("", "", "disk")), sinks(archive("", "", "disk2")), elsewhere},
		{"a bucket for a claim", sinks(archive("", "", "disk")), sinks(archive("orders", "", "")), elsewhere},
		{"another schema", sinks(postgres("")), sinks(postgres("desk")), ".postgres.schema: Invalid value: desk differs from ordergrid, where the position of the sink is; keep it, or remove the sink and add one of another name"},
		{"orders only is said", matching(""), matching(api.SinkOrders), ""},
		{"executions are added", matching(""), matching(api.SinkOrdersAndExecutions), fmt.Sprintf(otherContent, "OrdersAndExecutions", "Orders")},
		{"executions are taken", matching(api.SinkOrdersAndExecutions), matching(""), fmt.Sprintf(otherContent, "Orders", "OrdersAndExecutions")},
		{"orders are taken", matching(api.SinkOrdersAndExecutions), matching(api.SinkExecutions), fmt.Sprintf(otherContent, "Executions", "OrdersAndExecutions")},
		{"orders are added", matching(api.SinkExecutions), matching(api.SinkOrdersAndExecutions), fmt.Sprintf(otherContent, "OrdersAndExecutions", "Executions")},
		{"executions alone stay", matching(api.SinkExecutions), matching(api.SinkExecutions), ""},
		{"the topic of executions", fills("fills"), fills("trades"), ".kafka.executionsTopic: Invalid value: changed, and the executions of before are in the other topic; keep it, or remove the sink and add one of another name"},
		{"the default topic is said", fills(""), fills("{grid}.executions"), ""},

		{"Hold is left out", hold, sinks(), ""},
		{"Hold is said", sinks(), hold, ""},
		{"conversion of a claim", behind(claim), sinks(onClaim("file", nil)), ""},
		{"with another sink", behind(claim), sinks(onClaim("file", nil), fileSink("audit", "")), ""},
		{"and back", sinks(onClaim("file", nil)), behind(claim), ""},
		{"conversion of a claim under another name", behind(claim), sinks(onClaim("desk", nil)), added},
		{"conversion of another claim", behind(claim), sinks(onClaim("file", large)), gone},
		{"conversion of a claim to a directory", behind(claim), sinks(fileSink("file", "")), gone},
		{"a claim of write-behind is left out", behind(claim), sinks(), gone},
		{"conversion of a directory", behind(&api.FileSinkSpec{}), sinks(fileSink("file", "")), ""},
		{"conversion of a default", behind(nil), sinks(fileSink("file", api.SinkVolumeEmptyDir)), ""},
		{"conversion of a directory to a claim", behind(nil), sinks(onClaim("file", nil)), gone},
		{"a directory of write-behind is left out", behind(nil), sinks(), ""},
		{"write-behind is added", sinks(), behind(nil), legacy},
		{"Hold becomes File", hold, behind(nil), legacy},
		{"another claim of write-behind", behind(claim), behind(&api.FileSinkSpec{Volume: api.SinkVolumeClaim, Size: resource.MustParse("2Gi")}), legacy},
		{"back to another claim", sinks(onClaim("file", nil)), behind(&api.FileSinkSpec{Volume: api.SinkVolumeClaim, Size: resource.MustParse("2Gi")}), legacy},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid := createGrid(t, cl, test.from)
			grid.Spec.Sinks, grid.Spec.WriteBehind = test.to.Sinks, test.to.WriteBehind
			checkRefusal(t, cl.Update(t.Context(), grid), test.refuse)
		})
	}
}

// TestNamesOfRemovedSinks: a pod that lets go of a sink does not meet one that has it.
func TestNamesOfRemovedSinks(t *testing.T) {
	cl := newClient(t)
	grid := createGrid(t, cl, api.OrderGridSpec{Sinks: []api.SinkSpec{fileSink("desk", "")}})
	setRemoved := func(names ...string) {
		t.Helper()
		grid.Status.RemovedSinks = names
		if err := cl.Status().Update(t.Context(), grid); err != nil {
			t.Fatal(err)
		}
	}
	set := func(sinks ...api.SinkSpec) error {
		grid.Spec.Sinks = sinks
		return cl.Update(t.Context(), grid)
	}
	setRemoved("audit", "desk") // desk is back already: its status is older
	checkRefusal(t, set(fileSink("audit", ""), fileSink("desk", "")), "spec.sinks: Invalid value: the grid had a sink of one of these names, [\"audit\", \"desk\"], whose place in the logs its nodes let go of (status.removedSinks); use another name")
	checkRefusal(t, set(fileSink("archive", ""), fileSink("desk", "")), "")
	setRemoved("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n")
	checkRefusal(t, set(fileSink("archive", ""), fileSink("desk", ""), fileSink("more", "")), "spec.sinks: Invalid value: 3 sinks, and the nodes have not let go of 14 that were removed; together they may be 16: wait until status.removedSinks is shorter")
	checkRefusal(t, set(fileSink("archive", "")), "")
}

// TestShardsFall: orders move away from a shard that is removed, except freed ones: they are in files only, which must
// outlive it. Also through the scale subresource.
func TestShardsFall(t *testing.T) {
	cl := newClient(t)
	deleted := func(f *api.FileSinkSpec) { f.WhenDeleted = api.ClaimDelete }
	free := api.RetentionSpec{Policy: api.RetentionFreeDownstream}
	for name, test := range map[string]struct {
		spec   api.OrderGridSpec
		refuse string
	}{
		"all is in memory":                 {api.OrderGridSpec{}, ""},
		"all is in memory too":             {api.OrderGridSpec{Sinks: []api.SinkSpec{fileSink("audit", ""), onClaim("desk", deleted)}}, ""},
		"freed, in files that outlive it":  {api.OrderGridSpec{Retention: free, Sinks: []api.SinkSpec{onClaim("desk", nil)}}, ""},
		"freed, in one of two":             {api.OrderGridSpec{Retention: free, Sinks: []api.SinkSpec{fileSink("audit", ""), onClaim("desk", nil)}}, ""},
		"freed, in files that go with it":  {api.OrderGridSpec{Retention: free, Sinks: []api.SinkSpec{onClaim("desk", deleted)}}, "spec.shards: Invalid value: 2 is fewer than 3, and with retention.policy FreeDownstream orders that were freed are in the files of sinks only, which go with the pods of the shards that are removed; keep 3"},
		"freed, in files of write-behind":  {api.OrderGridSpec{Retention: free, WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile, File: &api.FileSinkSpec{Volume: api.SinkVolumeClaim}}}, ""},
		"in files of write-behind as well": {api.OrderGridSpec{WriteBehind: api.WriteBehindSpec{Sink: api.WriteBehindFile}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.Shards = 3
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
			checkRefusal(t, cl.SubResource("scale").Update(t.Context(), createGrid(t, cl, test.spec), client.WithSubResourceBody(scale)), test.refuse)
		})
	}
}

// TestSinkColumn: kubectl get -o wide shows the names of all sinks.
func TestSinkColumn(t *testing.T) {
	cl := newClient(t)
	grid := createGrid(t, cl, api.OrderGridSpec{Sinks: []api.SinkSpec{fileSink("audit", ""), fileSink("desk", "")}})
	grid.Status.SinkNames = "audit,desk"
	if err := cl.Status().Update(t.Context(), grid); err != nil {
		t.Fatal(err)
	}
	http, err := rest.HTTPClientFor(envtest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	r, err := rest.RESTClientForConfigAndClient(&rest.Config{Host: envtest.Config(t).Host, ContentConfig: rest.ContentConfig{GroupVersion: &api.GroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()}, APIPath: "/apis"}, http)
	if err != nil {
		t.Fatal(err)
	}
	body, err := r.Get().Namespace("default").Resource("ordergrids").Name(grid.Name).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Sink" })
	if got := table.Rows[0].Cells[at]; got != "audit,desk" {
		t.Errorf("column Sink shows %v", got)
	}
}
