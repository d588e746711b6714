package ordergrid

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// archiveSinks keep the log in a bucket and on a claim.
func archiveSinks() []api.SinkSpec {
	return []api.SinkSpec{
		{Name: "cold", Type: api.SinkArchive, Archive: &api.ArchiveSinkSpec{Bucket: &api.ArchiveBucketSpec{
			Name: "orders", Prefix: "prod/log", Endpoint: "https://minio.store:9000", Region: "eu-west-1", CredentialsSecretName: "store", CASecret: &api.SecretKey{Name: "store-ca", Key: "ca.pem"},
		}}},
		{Name: "disk", Type: api.SinkArchive, Archive: &api.ArchiveSinkSpec{ClaimName: "archive"}},
	}
}

// bridgeSinks put records onto the log of another grid.
func bridgeSinks() []api.SinkSpec {
	return []api.SinkSpec{{Name: "risk", Type: api.SinkBridge, Bridge: &api.BridgeSinkSpec{
		Endpoints: []string{"risk-client.desk:7400"}, Grid: "risk", Callback: "count-accounts", TLS: &api.BridgeTLSSpec{SecretName: "risk-client", ServerName: "risk-client.desk.svc"},
	}}}
}

// outsideSinks are one of each other type that the operator runs a pod for.
func outsideSinks() []api.SinkSpec {
	return []api.SinkSpec{
		{Name: "bus", Type: api.SinkKafka, Kafka: &api.KafkaSinkSpec{
			Brokers: []string{"kafka-0.kafka:9093", "kafka-1.kafka:9093"}, Format: api.KafkaFormatJSON, ReplicationFactor: 3,
			TLS:  &api.KafkaTLSSpec{SecretName: "kafka-tls", ClientCertificate: api.KafkaClientCertificatePresent},
			SASL: &api.KafkaSASLSpec{SecretName: "kafka-user"},
		}},
		{Name: "db", Type: api.SinkPostgreSQL, Postgres: &api.PostgresSinkSpec{URLSecret: api.SecretKey{Name: "db", Key: "url"}, CASecret: &api.SecretKey{Name: "db-ca", Key: "ca.pem"}}},
	}
}

// sinkBench is a grid with these sinks, TLS and authorization.
type sinkBench struct {
	*bench
	grid *api.OrderGrid
}

func newSinkBench(t *testing.T, sinks ...api.SinkSpec) *sinkBench {
	b := &sinkBench{bench: newBench(t)}
	b.grid = b.create("rtd", api.OrderGridSpec{Sinks: sinks, Security: api.SecuritySpec{TLS: &api.TLSSpec{}, Authorization: &api.AuthorizationSpec{Mode: api.AuthorizationEnforce}}})
	b.run(b.grid)
	return b
}

func (b *sinkBench) named(o client.Object, name string) {
	b.t.Helper()
	o.SetNamespace(b.namespace)
	o.SetName(name)
	b.get(o)
}

func (b *sinkBench) condition(status metav1.ConditionStatus, reason string, parts ...string) {
	b.t.Helper()
	c := meta.FindStatusCondition(b.grid.Status.Conditions, api.ConditionSinksReady)
	if c == nil || c.Status != status || c.Reason != reason {
		b.t.Fatalf("SinksReady is %+v, want %s %s", c, status, reason)
	}
	for _, part := range parts {
		if !strings.Contains(c.Message, part) {
			b.t.Errorf("SinksReady: %s, want %q in it", c.Message, part)
		}
	}
}

// job is the one Job of the grid that is not in seen.
func (b *sinkBench) job(seen ...string) *batchv1.Job {
	b.t.Helper()
	var jobs batchv1.JobList
	if err := b.client.List(b.t.Context(), &jobs, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	list := slices.DeleteFunc(jobs.Items, func(j batchv1.Job) bool { return slices.Contains(seen, j.Name) })
	if len(list) != 1 {
		b.t.Fatalf("%d Jobs, want 1 beside %v", len(list), seen)
	}
	return &list[0]
}

// end plays the Job controller.
func (b *sinkBench) end(job *batchv1.Job, failure string) {
	b.t.Helper()
	now := metav1.Now()
	job.Status.StartTime = &now
	add := func(kind batchv1.JobConditionType) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Message: failure, Reason: "Test", LastTransitionTime: now})
	}
	if failure == "" {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		add(batchv1.JobSuccessCriteriaMet)
		add(batchv1.JobComplete)
	} else {
		add(batchv1.JobFailureTarget)
		add(batchv1.JobFailed)
	}
	if err := b.client.Status().Update(b.t.Context(), job); err != nil {
		b.t.Fatal(err)
	}
}

// ready plays the Deployment controller and the kubelet.
func (b *sinkBench) ready(name string, n int32) {
	b.t.Helper()
	d := &appsv1.Deployment{}
	b.named(d, name)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, ReadyReplicas: n, UpdatedReplicas: n, AvailableReplicas: n}
	if err := b.client.Status().Update(b.t.Context(), d); err != nil {
		b.t.Fatal(err)
	}
}

func (b *sinkBench) replicas(name string) int32 {
	b.t.Helper()
	d := &appsv1.Deployment{}
	b.named(d, name)
	return *d.Spec.Replicas
}

// TestSinkPods: a sink gets its identity, rights and pod, after its target is prepared; it is not called ready before it
// is; and it goes with everything of it.
func TestSinkPods(t *testing.T) {
	b := newSinkBench(t, outsideSinks()...)
	b.run(b.grid)
	if got := [2]int32{b.replicas("rtd-sink-bus"), b.replicas("rtd-sink-db")}; got != [2]int32{1, 0} {
		t.Fatalf("replicas of bus and db are %v, want 1 and 0 before the tables are made", got)
	}
	b.condition(metav1.ConditionFalse, reasonSinkNotReady, "sink bus: the pod of Deployment rtd-sink-bus is not ready", "sink db: Job rtd-sink-db-prepare-")
	first := b.job()
	b.end(first, "")
	b.run(b.grid)
	if n := b.replicas("rtd-sink-db"); n != 1 {
		t.Fatalf("replicas of db are %d once the tables are made", n)
	}
	b.ready("rtd-sink-bus", 1)
	b.ready("rtd-sink-db", 1)
	b.run(b.grid)
	b.condition(metav1.ConditionTrue, reasonSinksReady, "all 2 sinks with pods are ready")
	if s := b.grid.Status.Sinks; len(s) != 2 || s[0].Reason != reasonSinkReady || s[1].Reason != reasonSinkReady {
		t.Errorf("status.sinks is %+v, want two that are ready", s)
	}
	if writes := b.run(b.grid); len(writes) > 0 {
		t.Errorf("nothing has changed, and the operator writes %v", writes)
	}
	b.ready("rtd-sink-bus", 0)
	b.run(b.grid)
	b.condition(metav1.ConditionFalse, reasonSinkNotReady, "sink bus", "Entries that a sink does not hold are kept in memory")

	// Another image: the pod goes on with the old one until the tables are those of the next.
	b.reconcile.Defaults.SinkImage = "ordergrid.dev/grid-sink:next"
	b.run(b.grid)
	b.run(b.grid)
	image := func() string {
		d := &appsv1.Deployment{}
		b.named(d, "rtd-sink-db")
		return d.Spec.Template.Spec.Containers[0].Image
	}
	if got := image(); got != testDefaults.SinkImage {
		t.Errorf("the pod has image %s before the tables are made", got)
	}
	b.end(b.job(first.Name), "password authentication failed")
	b.run(b.grid)
	b.condition(metav1.ConditionFalse, reasonSinkPrepareFailed, "password authentication failed", "then delete the Job")
	again := b.job(first.Name)
	if err := b.client.Delete(t.Context(), again, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	b.run(b.grid)
	b.end(b.job(first.Name), "")
	b.run(b.grid)
	if got := image(); got != "ordergrid.dev/grid-sink:next" {
		t.Errorf("the pod has image %s after the tables are made", got)
	}
}

// TestSinkIdentity: what a sink may do by its certificate, and whose its objects are.
func TestSinkIdentity(t *testing.T) {
	b := newSinkBench(t, outsideSinks()...)
	rules := &corev1.ConfigMap{}
	b.named(rules, api.AuthorizationConfigMap("rtd"))
	for _, sink := range []string{"bus", "db"} {
		if !strings.Contains(rules.Data[rulesKey], api.SinkUser(sink)) {
			t.Errorf("the rules of the nodes do not name %s: %s", api.SinkUser(sink), rules.Data[rulesKey])
		}
		s := &corev1.Secret{}
		b.named(s, api.TLSSinkSecret("rtd", sink))
		block, _ := pem.Decode(s.Data["tls.crt"])
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || cert.Subject.CommonName != api.SinkUser(sink) {
			t.Errorf("the certificate of %s is of %v (%v)", sink, cert.Subject, err)
		}
		d := &appsv1.Deployment{}
		b.named(d, api.SinkName("rtd", sink))
		for _, o := range []client.Object{&corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}} {
			b.named(o, d.Name)
			if ref := metav1.GetControllerOf(o); ref == nil || ref.UID != d.UID {
				t.Errorf("%T %s has owner %v, want the Deployment, with which it goes", o, d.Name, ref)
			}
		}
	}
	if ref := metav1.GetControllerOf(b.job()); ref == nil || ref.Kind != "Deployment" {
		t.Errorf("the Job has owner %v, want the Deployment", ref)
	}
	set := &appsv1.StatefulSet{}
	b.named(set, api.ShardName("rtd", 0))
	if args := strings.Join(set.Spec.Template.Spec.Containers[0].Args, " "); !strings.Contains(args, "--external-sink bus --external-sink db") {
		t.Errorf("the nodes are told %s", args)
	}
	b.get(b.grid)
	b.grid.Spec.Sinks = b.grid.Spec.Sinks[1:]
	if err := b.client.Update(t.Context(), b.grid); err != nil {
		t.Fatal(err)
	}
	b.run(b.grid)
	d := &appsv1.Deployment{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "rtd-sink-bus"}, d); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment of a removed sink: %v, want none", err)
	}
	b.named(rules, rules.Name)
	if strings.Contains(rules.Data[rulesKey], api.SinkUser("bus")) {
		t.Errorf("the rules still name the removed sink: %s", rules.Data[rulesKey])
	}
}

// TestSinkNameTaken: a Deployment of another owner is left alone and reported.
func TestSinkNameTaken(t *testing.T) {
	b := &sinkBench{bench: newBench(t)}
	labels := map[string]string{"app": "other"}
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "rtd-sink-bus", Namespace: b.namespace}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "other"}}}},
	}}
	if err := b.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	b.grid = b.create("rtd", api.OrderGridSpec{Sinks: outsideSinks()[:1], Security: api.SecuritySpec{TLS: &api.TLSSpec{}}})
	if _, err := b.reconcile.Reconcile(t.Context(), request(b.grid)); err == nil || !strings.Contains(err.Error(), "rtd-sink-bus exists already") {
		t.Errorf("reconcile: %v, want that the name is taken", err)
	}
	b.get(b.grid)
	b.condition(metav1.ConditionUnknown, reasonSinksNotLooked)
	if c := meta.FindStatusCondition(b.grid.Status.Conditions, api.ConditionStalled); c == nil || c.Reason != reasonNameTaken {
		t.Errorf("Stalled is %+v, want %s", c, reasonNameTaken)
	}
	b.get(other)
	if other.Spec.Template.Spec.Containers[0].Image != "other" {
		t.Errorf("the other's Deployment was changed: %+v", other.Spec.Template.Spec)
	}
}
