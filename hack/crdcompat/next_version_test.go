package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }

const next = "v1beta1"

// server is a real API server with a record that is in use.
type server struct {
	t         *testing.T
	client    client.Client
	namespace string
	record    *api.GridPartition
}

// TestNextVersion takes GridPartition, the record that grid nodes change while they serve, through the way to a second
// version that docs/versions.md describes: no webhook, both versions served, stored objects rewritten, the old one gone. At
// each step a node of the old version changes the record, and what may not be is refused.
func TestNextVersion(t *testing.T) {
	s := newServer(t)
	s.wantStored("v1alpha1")
	s.advance(2)

	s.t.Log("both are served, the next one is stored")
	s.change(func(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
		second := *spec.Versions[0].DeepCopy()
		second.Name = next
		spec.Versions[0].Storage = false
		spec.Versions = append(spec.Versions, second)
	})
	s.wantSame(next)
	s.wantStored("v1alpha1") // not written yet
	s.advance(3)
	s.wantStored(next)
	s.wantStoredVersions("v1alpha1", next)

	s.t.Log("the old version cannot be dropped while something may be stored in it")
	err := s.try(func(spec *apiextensionsv1.CustomResourceDefinitionSpec) { spec.Versions = spec.Versions[1:] })
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "storedVersions") {
		t.Errorf("dropping v1alpha1: %v", err)
	}

	s.t.Log("the rest is rewritten, each by a write that changes nothing")
	for _, name := range []string{"rtd-p1", "rtd-p2"} {
		o := s.in("v1alpha1", name)
		if err := s.client.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if text := envtest.Save(t, resource, s.namespace, name).Text(); !strings.Contains(text, `"ordergrid.dev/`+next+`"`) {
			t.Errorf("%s is stored as %s", name, text)
		}
	}
	crd := s.crd()
	crd.Status.StoredVersions = []string{next}
	if err := s.client.Status().Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	s.advance(4)

	s.t.Log("the old version is not served any more")
	s.change(func(spec *apiextensionsv1.CustomResourceDefinitionSpec) { spec.Versions = spec.Versions[1:] })
	s.wantSame(next)
	if got, _, _ := unstructured.NestedInt64(s.in(next, s.record.Name).Object, "status", "epoch"); got != 4 {
		t.Errorf("epoch %d", got)
	}
}

var resource = schema.GroupResource{Group: api.GroupVersion.Group, Resource: "gridpartitions"}

func newServer(t *testing.T) *server {
	t.Helper()
	scheme := envtest.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(envtest.Config(t), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "versions-"}}
	if err := cl.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, client: cl, namespace: ns.Name}
	for index := range int32(3) {
		s.record = &api.GridPartition{
			ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName("rtd", index), Namespace: s.namespace},
			Spec:       api.GridPartitionSpec{GridRef: api.GridReference{Name: "rtd"}, Partition: index, Replicas: 2, MinInSync: 1, PreferredPod: "rtd-s0-0"},
		}
		if err := cl.Create(t.Context(), s.record); err != nil {
			t.Fatal(err)
		}
	}
	s.record = &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: "rtd-p0", Namespace: s.namespace}}
	s.advance(1)
	return s
}

// advance changes the record as a grid node does, by v1alpha1, and has a change that may not be refused, by all versions.
func (s *server) advance(epoch int64) {
	s.t.Helper()
	if err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(s.record), s.record); err != nil {
		s.t.Fatal(err)
	}
	member := api.Member{ID: "rtd-s0-0/0123456789abcdef", PodName: "rtd-s0-0", BootID: "0123456789abcdef", Address: "10.0.0.1:7400"}
	s.record.Status = api.GridPartitionStatus{Epoch: epoch, Lineage: 1, ChangeID: fmt.Sprint("change-", epoch), Primary: &member, InSync: []api.Member{member}}
	if err := s.client.Status().Update(s.t.Context(), s.record); err != nil {
		s.t.Fatalf("epoch %d: %v", epoch, err)
	}
	for _, v := range s.crd().Spec.Versions {
		o := s.in(v.Name, s.record.Name)
		_ = unstructured.SetNestedField(o.Object, epoch+2, "status", "epoch") // the map is there
		if err := s.client.Status().Update(s.t.Context(), o); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "does not follow") {
			s.t.Errorf("%s: epoch %d after %d: %v", v.Name, epoch+2, epoch, err)
		}
	}
}

// in reads a record by one version.
func (s *server) in(version, name string) *unstructured.Unstructured {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: api.GroupVersion.Group, Version: version, Kind: "GridPartition"})
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
		s.t.Fatalf("%s by %s: %v", name, version, err)
	}
	return o
}

// wantSame: a record reads the same by that version as by the first one that is served.
func (s *server) wantSame(version string) {
	s.t.Helper()
	a, b := s.in(s.crd().Spec.Versions[0].Name, s.record.Name), s.in(version, s.record.Name)
	for _, part := range []string{"spec", "status"} {
		if a.Object[part] == nil || !equality.Semantic.DeepEqual(a.Object[part], b.Object[part]) {
			s.t.Errorf("%s is %v by %s and %v by %s", part, a.Object[part], a.GetAPIVersion(), b.Object[part], version)
		}
	}
}

func (s *server) wantStored(version string) {
	s.t.Helper()
	text := envtest.Save(s.t, resource, s.namespace, s.record.Name).Text()
	if want := fmt.Sprintf(`{"apiVersion":"ordergrid.dev/%s"`, version); !strings.HasPrefix(text, want) {
		s.t.Errorf("etcd has %.80s, want %s", text, want)
	}
}

func (s *server) crd() *apiextensionsv1.CustomResourceDefinition {
	s.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.client.Get(s.t.Context(), types.NamespacedName{Name: resource.String()}, crd); err != nil {
		s.t.Fatal(err)
	}
	return crd
}

func (s *server) try(change func(*apiextensionsv1.CustomResourceDefinitionSpec)) error {
	s.t.Helper()
	crd := s.crd()
	change(&crd.Spec)
	return s.client.Update(s.t.Context(), crd)
}

// change changes the CRD and waits until the API server goes by it.
func (s *server) change(change func(*apiextensionsv1.CustomResourceDefinitionSpec)) {
	s.t.Helper()
	if err := s.try(change); err != nil {
		s.t.Fatal(err)
	}
	want := s.crd().Spec.Versions
	envtest.Eventually(s.t, "the API server serves the versions", func(ctx context.Context) error {
		for _, version := range []string{"v1alpha1", next} {
			there := slices.ContainsFunc(want, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: api.GroupVersion.Group, Version: version, Kind: "GridPartition"})
			err := s.client.Get(ctx, client.ObjectKeyFromObject(s.record), o)
			if there != (err == nil) {
				return errors.Join(fmt.Errorf("%s: served %v, want %v", version, err == nil, there), err)
			}
		}
		return nil
	})
}

func (s *server) wantStoredVersions(want ...string) {
	s.t.Helper()
	envtest.Eventually(s.t, "status.storedVersions", func(context.Context) error {
		if got := s.crd().Status.StoredVersions; !slices.Equal(got, want) {
			return fmt.Errorf("%v, want %v", got, want)
		}
		return nil
	})
}
