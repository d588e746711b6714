package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const description = `An in-memory order store for trading systems: an order is in the memory of several servers before it is acknowledged.

* **OrderGrid** is a grid of shards, each of one to three copies, with hand-over, rolling updates and placement.
* **OrderProbe** measures a grid under load and keeps a ledger of every order.
* **FailoverDrill** breaks a grid on purpose and certifies what was lost.
* **GridPartition** is the operator's record of who serves a partition; people read it.

Create an OrderGrid, wait for its condition Redundant, and point clients at Service ` + "`NAME-client`" + `. Monitoring, dashboards and the rights of
drills are settings of the Helm chart; with OLM they are added by hand, see the documentation. The operator works and has rights in every
namespace; for some namespaces only, install the chart with watchNamespaces.
`

// icon is two servers with the same three orders.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><g fill="none" stroke="#1f4e79" stroke-width="3"><rect x="6" y="10" width="22" height="44" rx="3"/><rect x="36" y="10" width="22" height="44" rx="3"/></g><g fill="#1f4e79"><rect x="11" y="17" width="12" height="6"/><rect x="11" y="29" width="12" height="6"/><rect x="11" y="41" width="12" height="6"/><rect x="41" y="17" width="12" height="6"/><rect x="41" y="29" width="12" height="6"/><rect x="41" y="41" width="12" height="6"/></g></svg>`

// clusterServiceVersion describes the operator to OLM, which makes its Deployment, account, roles and bindings.
func clusterServiceVersion(c *chart) (any, error) {
	v, err := semver.Parse(c.meta.Version)
	if err != nil {
		return nil, fmt.Errorf("Chart.yaml: version %q: %w", c.meta.Version, err)
	}
	examples, err := json.MarshalIndent(c.examples, "", "  ")
	if err != nil {
		return nil, err
	}
	container := &c.deployment.Spec.Template.Spec.Containers[0]
	csv := &v1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.v%s", packageName, c.meta.Version), Namespace: "placeholder", Labels: map[string]string{
			"operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported",
		}, Annotations: map[string]string{
			"alm-examples": string(examples),
			"capabilities": "Deep Insights",
			"categories":   "Database",
			"description":  c.meta.Description,
			"repository":   c.meta.Home,
			"support":      c.meta.Home + "/issues",

			"containerImage":                                  container.Image,
			"operators.operatorframework.io/builder":          "operator-sdk-" + sdk,
			"operators.operatorframework.io/project_layout":   "go.kubebuilder.io/v4",
			"operators.operatorframework.io/internal-objects": `["gridpartitions.ordergrid.dev"]`,
		}},
		Spec: v1alpha1.ClusterServiceVersionSpec{
			Version: version.OperatorVersion{Version: v}, Maturity: "alpha", DisplayName: "OrderGrid", Description: description, Keywords: c.meta.Keywords,
			MinKubeVersion: strings.TrimSuffix(strings.TrimPrefix(c.meta.KubeVersion, ">="), "-0"),
			Provider:       v1alpha1.AppLink{Name: "OrderGrid", URL: c.meta.Home},
			Maintainers:    []v1alpha1.Maintainer{{Name: "OrderGrid", Email: "maintainers@ordergrid.dev"}},
			Links:          []v1alpha1.AppLink{{Name: "Documentation", URL: c.meta.Home + "/tree/main/docs"}, {Name: "Source", URL: c.meta.Home}},
			Icon:           []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString([]byte(icon)), MediaType: "image/svg+xml"}},
			InstallModes:   installModes(),
			InstallStrategy: v1alpha1.NamedInstallStrategy{StrategyName: v1alpha1.InstallStrategyNameDeployment, StrategySpec: v1alpha1.StrategyDetailsDeployment{
				DeploymentSpecs:    []v1alpha1.StrategyDeploymentSpec{{Name: c.deployment.Name, Label: c.deployment.Labels, Spec: c.deployment.Spec}},
				ClusterPermissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: c.deployment.Spec.Template.Spec.ServiceAccountName, Rules: c.clusterRules}},
				Permissions:        []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: c.deployment.Spec.Template.Spec.ServiceAccountName, Rules: c.ownRules}},
			}},
			CustomResourceDefinitions: v1alpha1.CustomResourceDefinitions{Owned: owned(c)},
			RelatedImages:             relatedImages(container.Image, container.Args),
		},
	}
	return withoutStatus(csv), nil
}

// installModes: the operator's rights are for the whole cluster. Who wants it in some namespaces only installs the chart,
// whose watchNamespaces give it rights there and nowhere else.
func installModes() (modes []v1alpha1.InstallMode) {
	for _, t := range []v1alpha1.InstallModeType{v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace, v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces} {
		modes = append(modes, v1alpha1.InstallMode{Type: t, Supported: t == v1alpha1.InstallModeTypeAllNamespaces})
	}
	return modes
}

// made is what is created for an object of a kind: OLM shows it beside the object.
var made = map[string][]v1alpha1.APIResourceReference{
	"OrderGrid": {
		{Kind: "GridPartition", Version: "ordergrid.dev/v1alpha1"}, {Kind: "StatefulSet", Version: "apps/v1"}, {Kind: "Pod", Version: "v1"},
		{Kind: "Service", Version: "v1"}, {Kind: "PodDisruptionBudget", Version: "policy/v1"},
	},
	"OrderProbe":    {{Kind: "Job", Version: "batch/v1"}, {Kind: "ConfigMap", Version: "v1"}},
	"FailoverDrill": {{Kind: "Job", Version: "batch/v1"}, {Kind: "Secret", Version: "v1"}},
	"GridPartition": {},
	"InstrumentSet": {},
	"GridFunction":  {},
	"RiskProfile":   {},
	"GridRegion":    {},
	"GridLink":      {{Kind: "Deployment", Version: "apps/v1"}},
	"OrderGateway":  {{Kind: "Deployment", Version: "apps/v1"}, {Kind: "Service", Version: "v1"}},
}

// owned are the kinds, described by the first sentences of their CRDs.
func owned(c *chart) (all []v1alpha1.CRDDescription) {
	for _, file := range slices.Sorted(maps.Keys(c.crds)) {
		crd := c.crds[file]
		for _, v := range crd.Spec.Versions {
			all = append(all, v1alpha1.CRDDescription{
				Name: crd.Name, Version: v.Name, Kind: crd.Spec.Names.Kind, DisplayName: crd.Spec.Names.Kind,
				Description: strings.Join(strings.Fields(v.Schema.OpenAPIV3Schema.Description), " "), Resources: made[crd.Spec.Names.Kind],
				StatusDescriptors: []v1alpha1.StatusDescriptor{{Path: "conditions", DisplayName: "Conditions", Description: "What holds and what does not, with the reason.", XDescriptors: []string{"urn:alm:descriptor:io.kubernetes.conditions"}}},
			})
		}
	}
	return all
}

// relatedImages are all that the operator runs or starts, which a mirror of a cluster without Internet has to copy.
func relatedImages(operator string, args []string) []v1alpha1.RelatedImage {
	images := []v1alpha1.RelatedImage{{Name: "operator", Image: operator}}
	for _, arg := range args {
		name, image, found := strings.Cut(strings.TrimPrefix(arg, "--"), "-image=")
		if found {
			images = append(images, v1alpha1.RelatedImage{Name: name, Image: image})
		}
	}
	return images
}

// withoutStatus is an object as people write it: Go's types put an empty status and time of creation into it.
func withoutStatus(object any) map[string]any {
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err) // one of Kubernetes' own types
	}
	delete(u, "status")
	prune(u)
	return u
}

// prune removes creation times that are null, at any depth.
func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		if t, found := v["creationTimestamp"]; found && t == nil {
			delete(v, "creationTimestamp")
		}
		for _, child := range v {
			prune(child)
		}
	case []any:
		for _, child := range v {
			prune(child)
		}
	}
}
