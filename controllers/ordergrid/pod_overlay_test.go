package ordergrid

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

func TestOverlayRefusesWhatWouldBreakTheGrid(t *testing.T) {
	for _, test := range []struct{ name, patch, want string }{
		{"misspelled field", `{"spec":{"hostNetwrok":true}}`, `spec.podTemplate: unknown field "hostNetwrok"; compare it with`},
		{"a pod spec without the spec", `{"containers":[]}`, `spec.podTemplate: unknown field "containers"`},
		{"no object", `[1]`, `spec.podTemplate: `},
		{"selector label", `{"metadata":{"labels":{"ordergrid.dev/shard":"7"}}}`, `spec.podTemplate.metadata.labels[ordergrid.dev/shard]: "7" would replace "0", by which Services and the operator find the pod; remove it, or use another label`},
		{"service account", `{"spec":{"serviceAccountName":"admin"}}`, `spec.podTemplate.spec.serviceAccountName: "admin" would replace "rtd-s0", which alone may change this shard's partitions; remove it; bind further roles to rtd-s0`},
		{"no token", `{"spec":{"automountServiceAccountToken":false}}`, `.automountServiceAccountToken: false would leave the grid node without access to its partitions; remove it`},
		{"container deleted", `{"spec":{"containers":[{"name":"grid-node","$patch":"delete"},{"name":"x","image":"x"}]}}`, `.spec.containers: the container grid-node is removed`},
		{"command", `{"spec":{"containers":[{"name":"grid-node","command":["sh"]}]}}`, `.spec.containers[grid-node].command: ["sh"] would run instead of the grid node; remove it`},
		{"args", `{"spec":{"containers":[{"name":"grid-node","args":["serve"]}]}}`, `.args: would replace the arguments the operator derives from spec; remove it; set the fields of spec instead`},
		{"image", `{"spec":{"containers":[{"name":"grid-node","image":"other"}]}}`, `.image: "other" would replace "ordergrid.dev/grid-node:dev"; remove it; set spec.image`},
		{"env", `{"spec":{"containers":[{"name":"grid-node","env":[{"name":"POD_IP","value":"1.2.3.4","valueFrom":null}]}]}}`, `.env[POD_IP]: would replace the value the arguments refer to`},
		{"port", `{"spec":{"containers":[{"name":"grid-node","ports":[{"containerPort":7400,"protocol":"TCP","name":"orders"}]}]}}`, `.ports: port data (7400) is missing or renamed`},
		{"readiness", `{"spec":{"containers":[{"name":"grid-node","readinessProbe":{"httpGet":{"path":"/healthz"}}}]}}`, `.readinessProbe: would no longer ask /readyz`},
		{"no readiness", `{"spec":{"containers":[{"name":"grid-node","readinessProbe":null}]}}`, `.readinessProbe: would no longer ask /readyz`},
		{"memory", `{"spec":{"containers":[{"name":"grid-node","resources":{"limits":{"memory":"1Gi"}}}]}}`, `.resources.limits.memory: 1Gi leaves less than 256Mi beside the 1Gi of spec.memory, and the node would be killed when it is full; give at least 1280Mi, or lower spec.memory`},
		{"sink volume", `{"spec":{"containers":[{"name":"grid-node","volumeMounts":[{"mountPath":"/var/lib/ordergrid/sink","name":"mine"}]}]}}`, `.volumeMounts[/var/lib/ordergrid/sink]: would replace a volume that the grid node depends on`},
		{"stop time", `{"spec":{"terminationGracePeriodSeconds":20}}`, `.spec.terminationGracePeriodSeconds: 20 is not more than spec.timing.drainTimeout 20s, so the pod would be killed while it drains; set at least 21, or remove it`},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid := pairGrid()
			grid.Spec.Sinks = []api.SinkSpec{{Name: api.SinkNameFile, Type: api.SinkFile}}
			grid.Spec.PodTemplate = raw(test.patch)
			_, err := overlay(grid, pod(grid, 0, testDefaults))
			var overlayErr *OverlayError
			if !errors.As(err, &overlayErr) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("\n got: %v\nwant: %s", err, test.want)
			}
		})
	}
}

// TestOverlayOfAFabric: a pod keeps its fabric and its processors; it may have further networks.
func TestOverlayOfAFabric(t *testing.T) {
	for _, test := range []struct{ name, patch, want string }{
		{"further networks", `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"market-data\"},{\"name\":\"ib-trading\",\"namespace\":\"trading\",\"interface\":\"ib1\"}]"}}}`, ""},
		{"another network instead", `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"market-data\"}]"}}}`,
			`spec.podTemplate.metadata.annotations[k8s.v1.cni.cncf.io/networks]: [{"name":"market-data"}] is without the network of spec.fabric; add {"name":"ib-trading","namespace":"trading","interface":"ib1"} to it`},
		{"another interface", `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{\"name\":\"ib-trading\",\"namespace\":\"trading\",\"interface\":\"net1\"}]"}}}`, "is without the network of spec.fabric"},
		{"the short form", `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"market-data"}}}`, `"market-data" is not a JSON list, in which the fabric could stand beside other networks; write it as`},
		{"the host's network", `{"spec":{"hostNetwork":true}}`, "spec.podTemplate.spec.hostNetwork: true leaves the pod on its host's network, where Multus adds none; remove it, or spec.fabric"},
		{"another volume", `{"spec":{"containers":[{"name":"grid-node","volumeMounts":[{"mountPath":"/etc/ordergrid/fabric","name":"mine"}]}]}}`, "would replace a volume that the grid node depends on"},
		{"a sidecar without limits", `{"spec":{"containers":[{"name":"logs","image":"logs:1"}]}}`,
			"spec.podTemplate.spec.containers[logs].resources.cpu: without a limit that is its request the pod is not Guaranteed"},
		{"a sidecar with other requests", `{"spec":{"containers":[{"name":"logs","image":"logs:1","resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"2Gi"}}}]}}`, "containers[logs].resources.memory"},
		{"a sidecar that is Guaranteed", `{"spec":{"containers":[{"name":"logs","image":"logs:1","resources":{"limits":{"cpu":"1","memory":"2Gi"}}}]}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			grid := fabricGrid()
			grid.Spec.PodTemplate = raw(test.patch)
			_, err := overlay(grid, pod(grid, 0, testDefaults))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("\n got: %v\nwant: %s", err, test.want)
			}
		})
	}
}

func TestOverlayKeepsWhatItDoesNotName(t *testing.T) {
	grid := pairGrid()
	grid.Spec.PodTemplate = raw(`{"metadata":{"labels":{"desk":"emea"}},"spec":{"hostNetwork":true,"terminationGracePeriodSeconds":60,
		"containers":[{"name":"grid-node","readinessProbe":{"periodSeconds":5},"env":[{"name":"ORDERGRID_FAULTY_DROP_EVERY","value":"50"}]},{"name":"extra","image":"extra:1"}]}}`)
	got, err := overlay(grid, pod(grid, 0, testDefaults))
	if err != nil {
		t.Fatal(err)
	}
	node := gridNode(&got)
	if got.Labels["desk"] != "emea" || got.Labels[api.LabelGrid] != "rtd" || !got.Spec.HostNetwork || *got.Spec.TerminationGracePeriodSeconds != 60 {
		t.Errorf("%+v", got)
	}
	if node.ReadinessProbe.PeriodSeconds != 5 || node.ReadinessProbe.HTTPGet.Path != "/readyz" || len(node.Args) == 0 || len(got.Spec.Containers) != 2 {
		t.Errorf("%+v", node)
	}
	if len(node.Env) != 3 || !containsEqual(node.Env, corev1.EnvVar{Name: "ORDERGRID_FAULTY_DROP_EVERY", Value: "50"}) {
		t.Errorf("an additional variable: %+v", node.Env)
	}
	if got.Spec.Affinity == nil || *got.Spec.SecurityContext.RunAsUser != objects.User {
		t.Errorf("%+v", got.Spec)
	}
}

func TestNoOverlay(t *testing.T) {
	grid := pairGrid()
	built := pod(grid, 0, testDefaults)
	for _, patch := range []string{"", "{}", "null"} {
		grid.Spec.PodTemplate = raw(patch)
		got, err := overlay(grid, built)
		if err != nil || len(got.Spec.Containers) != 1 {
			t.Errorf("overlay %q: %v, %+v", patch, err, got.Spec)
		}
	}
	grid.Spec.PodTemplate = nil
	if got, err := overlay(grid, built); err != nil || got.Spec.Containers[0].Image != testDefaults.Image {
		t.Errorf("no overlay: %v, %+v", err, got)
	}
}

// TestPodIsRestricted checks the pod against the Restricted Pod Security Standard, field by field; the API server of
// the cluster suite checks the same by namespace label.
func TestPodIsRestricted(t *testing.T) {
	for _, grid := range []*api.OrderGrid{pairGrid(), bankGrid(), singleGrid(), fabricGrid()} {
		spec := pod(grid, 0, testDefaults).Spec
		if spec.HostNetwork || spec.HostPID || spec.HostIPC || !*spec.SecurityContext.RunAsNonRoot ||
			spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("pod %+v", spec.SecurityContext)
		}
		for _, c := range spec.Containers {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 {
				t.Errorf("container %s: %+v", c.Name, s)
			}
			for _, p := range c.Ports {
				if p.HostPort != 0 {
					t.Errorf("container %s: host port %d", c.Name, p.HostPort)
				}
			}
		}
		for _, v := range spec.Volumes {
			if v.EmptyDir == nil && v.DownwardAPI == nil && v.Projected == nil {
				t.Errorf("volume %+v", v)
			}
		}
	}
}
