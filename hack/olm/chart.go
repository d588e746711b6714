package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// release is the name under which the chart is rendered: the name of all its objects.
const release = "ordergrid"

// chart is what the bundle is derived from.
type chart struct {
	meta struct {
		Version, AppVersion, Description, KubeVersion, Home string
		Keywords                                            []string
	}
	deployment   appsv1.Deployment
	service      corev1.Service
	clusterRules []rbacv1.PolicyRule // the operator's everywhere
	ownRules     []rbacv1.PolicyRule // and where it runs
	userRoles    []rbacv1.ClusterRole
	crds         map[string]apiextensionsv1.CustomResourceDefinition // by the name of their file
	crdFiles     map[string][]byte
	examples     []map[string]any // one of each kind that people write
}

// examples are files below docs/examples, and the kind that is taken from each.
var examples = []struct{ file, kind string }{
	{"pair/pair.yaml", "OrderGrid"},
	{"probe-stac-pair/probe-stac-pair.yaml", "OrderProbe"},
	{"drill-pull-the-plug/drill-pull-the-plug.yaml", "FailoverDrill"},
	{"grid-link/grid-link.yaml", "GridLink"},
	{"order-gateway/order-gateway.yaml", "OrderGateway"},
	{"exchange/exchange.yaml", "InstrumentSet"},
	{"functions/functions.yaml", "GridFunction"},
	{"limits/limits.yaml", "RiskProfile"},
	{"regions/regions.yaml", "GridRegion"},
}

func readChart(root, helm string) (*chart, error) {
	c := &chart{crds: map[string]apiextensionsv1.CustomResourceDefinition{}, crdFiles: map[string][]byte{}}
	dir := filepath.Join(root, "charts", "ordergrid")
	if err := readYAML(filepath.Join(dir, "Chart.yaml"), &c.meta); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "files", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in %s: %w", dir, err)
	}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := readYAML(file, &crd); err != nil {
			return nil, err
		}
		c.crds[filepath.Base(file)] = crd
		if c.crdFiles[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	for _, e := range examples {
		object, err := example(filepath.Join(root, "docs", "examples", e.file), e.kind)
		if err != nil {
			return nil, err
		}
		c.examples = append(c.examples, object)
	}
	return c, c.render(dir, helm)
}

// render takes what the chart installs with its own values, in every namespace: the one install mode of the bundle, which who
// makes an OperatorGroup of all namespaces has chosen.
func (c *chart) render(dir, helm string) error {
	kubeVersion := strings.TrimSuffix(strings.TrimPrefix(c.meta.KubeVersion, ">="), "-0")
	cmd := exec.Command(helm, "template", release, dir, "--namespace", "ordergrid-system", "--kube-version", kubeVersion,
		"--set", "clusterWide=Accept,crds.install=false,dashboards.configMaps.install=false")
	cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("helm template %s: %w\n%s; `go run ./e2e/cluster/cmd/cluster binaries --dir` says where a helm is", dir, err, &problem)
	}
	documents, err := split(out)
	if err != nil {
		return err
	}
	for _, u := range documents {
		if err := c.take(u); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	if c.deployment.Name == "" || c.service.Name == "" || len(c.clusterRules) == 0 || len(c.ownRules) == 0 || len(c.userRoles) == 0 {
		return fmt.Errorf("the chart renders no Deployment, Service, rights of the operator or roles of users: %d documents", len(documents))
	}
	return nil
}

// take puts an object where the bundle has it. OLM makes accounts and bindings itself; anything that is neither known to be
// made by OLM nor put into the bundle is an error, so that nothing the chart gets one day is forgotten here.
func (c *chart) take(u *unstructured.Unstructured) error {
	if u.GetAnnotations()["helm.sh/hook"] != "" {
		return nil // helm test
	}
	labels := u.GetLabels()
	for _, l := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by"} {
		delete(labels, l)
	}
	u.SetLabels(labels)
	u.SetNamespace("")
	convert := func(into any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true)
	}
	switch u.GetKind() {
	case "Deployment":
		err := convert(&c.deployment)
		for _, l := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by"} {
			delete(c.deployment.Spec.Template.Labels, l)
		}
		return err
	case "Service":
		return convert(&c.service)
	case "ClusterRole":
		var role rbacv1.ClusterRole
		if err := convert(&role); err != nil {
			return err
		}
		if slices.Contains([]string{release, release + "-certificates", release + "-metrics", release + "-preflight"}, role.Name) {
			c.clusterRules = append(c.clusterRules, role.Rules...)
		} else {
			c.userRoles = append(c.userRoles, role)
		}
	case "Role":
		var role rbacv1.Role
		err := convert(&role)
		c.ownRules = append(c.ownRules, role.Rules...)
		return err
	case "ServiceAccount", "ClusterRoleBinding", "RoleBinding":
	default:
		return fmt.Errorf("hack/olm does not know how to bundle it; add it to chart.take")
	}
	return nil
}

// split parses documents of YAML, without the empty ones.
func split(data []byte) (all []*unstructured.Unstructured, err error) {
	for document := range bytes.SplitSeq(data, []byte("\n---")) {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &u.Object); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, document)
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
	return all, nil
}

// example is the first object of a kind in a file.
func example(file, kind string) (map[string]any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	documents, err := split(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, u := range documents {
		if u.GetKind() == kind {
			return u.Object, nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", file, kind)
}

func readYAML(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
