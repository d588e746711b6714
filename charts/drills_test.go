package charts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestDrillsNowhere: without a namespace there is no permission to inject faults, and the operator gets no flag.
func TestDrillsNowhere(t *testing.T) {
	objects := render(t)
	for key := range objects {
		if strings.Contains(key, "drills") && !strings.HasPrefix(key, "CustomResourceDefinition/") {
			t.Errorf("%s is rendered without namespaces for drills", key)
		}
	}
	for _, arg := range as[appsv1.Deployment](t, objects, "Deployment/og-ordergrid").Spec.Template.Spec.Containers[0].Args {
		if strings.Contains(arg, "drill") {
			t.Errorf("argument %s", arg)
		}
	}
}

// TestDrillRights: permissions to inject faults are granted in the configured namespaces and nowhere else; no Secret is
// read but the operator's own.
func TestDrillRights(t *testing.T) {
	objects := render(t, "drills.namespaces={staging,lab}")
	if objects["ClusterRole/og-ordergrid-drills"] != nil {
		t.Error("cluster-wide permissions although two namespaces are named")
	}
	for _, ns := range []string{"staging", "lab"} {
		role := as[rbacv1.Role](t, objects, "Role/"+ns+"/og-ordergrid-drills")
		binding := as[rbacv1.RoleBinding](t, objects, "RoleBinding/"+ns+"/og-ordergrid-drills")
		if binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != "og-ordergrid" || binding.Subjects[0].Namespace != "og-system" {
			t.Errorf("%+v", binding)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.Verbs, []string{"create"}) {
				t.Errorf("Secrets of grids: %v", rule.Verbs)
			}
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				if slices.Contains(list, "*") || slices.Contains(list, "deletecollection") {
					t.Errorf("too much: %+v", rule)
				}
			}
		}
	}
	key := as[rbacv1.Role](t, objects, "Role/og-ordergrid-drills-key")
	if len(key.Rules) != 3 || !slices.Equal(key.Rules[0].Verbs, []string{"create"}) ||
		!slices.Equal(key.Rules[1].ResourceNames, []string{failoverdrill.KeySecret, failoverdrill.MetricsSecret}) || !slices.Equal(key.Rules[1].Verbs, []string{"get"}) ||
		!slices.Equal(key.Rules[2].ResourceNames, []string{failoverdrill.MetricsSecret}) || !slices.Equal(key.Rules[2].Verbs, []string{"patch"}) {
		t.Errorf("%+v", key.Rules)
	}
	args := as[appsv1.Deployment](t, objects, "Deployment/og-ordergrid").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--drill-namespaces=staging,lab") {
		t.Errorf("args %v", args)
	}

	all := render(t, "drills.namespaces={*}")
	if all["ClusterRole/og-ordergrid-drills"] == nil || all["ClusterRoleBinding/og-ordergrid-drills"] == nil {
		t.Error("no cluster-wide permissions")
	}
	watched := render(t, "drills.namespaces={*}", "watchNamespaces={emea}")
	if watched["ClusterRole/og-ordergrid-drills"] != nil || watched["Role/emea/og-ordergrid-drills"] == nil {
		t.Error("* is the namespaces that are watched")
	}
}

// TestDrillExecutors: an executor's token and authority come from Secrets, as files; plain http has to be enabled
// explicitly.
func TestDrillExecutors(t *testing.T) {
	pod := as[appsv1.Deployment](t, render(t, "drills.executors[0].name=lab", "drills.executors[0].url=https://executor.example:9443", "drills.executors[0].tokenSecret=lab-token", "drills.executors[0].caConfigMap=lab-ca"),
		"Deployment/og-ordergrid").Spec.Template.Spec
	c := pod.Containers[0]
	if !slices.Contains(c.Args, "--drill-executor=lab=https://executor.example:9443") || !slices.Contains(c.Args, "--drill-executor-token=lab=/etc/ordergrid/executors/lab/token") ||
		!slices.Contains(c.Args, "--drill-executor-ca=lab=/etc/ordergrid/executors/lab/ca.crt") {
		t.Errorf("args %v", c.Args)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Projected.Sources[0].Secret.Name != "lab-token" || pod.Volumes[0].Projected.Sources[1].ConfigMap.Name != "lab-ca" || c.VolumeMounts[0].MountPath != "/etc/ordergrid/executors/lab" || c.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("volumes %+v, mounts %+v", pod.Volumes, c.VolumeMounts)
	}
	const lab = "drills.executors[0].name=lab,drills.executors[0].tokenSecret=t,drills.executors[0].url="
	plain := as[appsv1.Deployment](t, render(t, lab+"http://x,drills.executors[0].insecure=Accept"), operator).Spec.Template.Spec.Containers[0]
	if !slices.Contains(plain.Args, "--drill-executor-insecure=lab") {
		t.Errorf("args %v", plain.Args)
	}
	for _, wrong := range []string{"drills.namespaces={Prod}", "drills.executors[0].name=x", "drills.executors[0].url=ftp://x", "drills.allow.lab={PodKill}", lab + "http://x", lab + "https://x"} {
		if out, err := helm(t, templated(wrong)...); err == nil || !strings.Contains(out, "drills") {
			t.Errorf("%s: %v\n%s", wrong, err, out)
		}
	}
}

// TestNodeFeaturesNamespace: the Jobs that inspect nodes run where their pods are allowed, and the operator has the
// permissions for it there.
func TestNodeFeaturesNamespace(t *testing.T) {
	objects := render(t, "drills.namespaces={staging}", "drills.nodeFeaturesNamespace=tools")
	role := as[rbacv1.Role](t, objects, "Role/tools/og-ordergrid-drills-node-features")
	if len(role.Rules) != 2 || !slices.Equal(role.Rules[0].Resources, []string{"jobs"}) || !slices.Equal(role.Rules[0].Verbs, []string{"get", "list", "create", "delete"}) || !slices.Equal(role.Rules[1].Verbs, []string{"list"}) {
		t.Errorf("%+v", role.Rules)
	}
	if b := as[rbacv1.RoleBinding](t, objects, "RoleBinding/tools/og-ordergrid-drills-node-features"); b.RoleRef.Name != role.Name || b.Subjects[0].Namespace != "og-system" {
		t.Errorf("%+v", b)
	}
	args := as[appsv1.Deployment](t, objects, "Deployment/og-ordergrid").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--drill-node-features-namespace=tools") {
		t.Errorf("args %v", args)
	}
}

// drill exercises the operator's FailoverDrill controller with the chart's permissions, without Chaos Mesh: it reports
// that as missing; it starts the recorder of a drill that does not need it; and it lets both be deleted.
func drill(t *testing.T, cl client.Client) {
	t.Helper()
	create := func(name string, fault api.DrillFaultType) *api.FailoverDrill {
		d := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Spec: api.FailoverDrillSpec{GridRef: api.GridReference{Name: "rtd"}, Faults: []api.DrillFault{{Name: "it", Type: fault}}}}
		if err := cl.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	kill := create("kill", api.FaultPodKill)
	envtest.Eventually(t, "the operator, with the chart's rights, has missed Chaos Mesh", func(ctx context.Context) error {
		if err := cl.Get(ctx, client.ObjectKeyFromObject(kill), kill); err != nil {
			return err
		}
		c := meta.FindStatusCondition(kill.Status.Conditions, api.ConditionPreflight)
		if c == nil || c.Reason != "FaultNotPossible" || !strings.Contains(c.Message, "Chaos Mesh is not installed") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	move := create("move", api.FaultHandOver)
	envtest.Eventually(t, "the operator, with the chart's rights, has started a recorder", func(ctx context.Context) error {
		if err := cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "move-recorder"}, &batchv1.Job{}); err != nil {
			return errors.Join(err, cl.Get(ctx, client.ObjectKeyFromObject(move), move), fmt.Errorf("%+v", move.Status.Conditions))
		}
		return cl.Get(ctx, client.ObjectKey{Namespace: "default", Name: "move-recorder"}, &corev1.Secret{})
	})
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "og-system", Name: failoverdrill.MetricsSecret}, &corev1.Secret{}); err != nil {
		t.Errorf("Prometheus has no certificate for the recorder's metrics: %v", err)
	}
	for _, d := range []*api.FailoverDrill{kill, move} {
		if err := cl.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		envtest.Eventually(t, "the operator, with the chart's rights, has finished a drill", func(ctx context.Context) error {
			if err := cl.Get(ctx, client.ObjectKeyFromObject(d), d); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it exists: %w, %+v", err, d.Status.Conditions)
			}
			return nil
		})
	}
}
