package charts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/e2e/chaosmesh/crds"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// noManifests are YAML files that are not Kubernetes manifests, and those that are invalid on purpose.
var noManifests = []string{
	"charts/upgrade/testdata/previous/objects/gridpartition.yaml", // of the earlier layout
	".golangci.yml", "api/v1alpha1/testdata/invalid/", "charts/ordergrid/", "charts/olm/metadata/", "charts/olm/tests/", "charts/testdata/prometheus-operator/",
	"dashboards/", "e2e/cluster/local/templates/", "controllers/orderprobe/testdata/arrival/", "controllers/failoverdrill/", "e2e/chaosmesh/testdata/faults.yaml",
	"hack/crdcompat/released/allowed.yaml", "e2e/scale/stages.yaml", "docs/examples/production/values.yaml",
}

// judgedElsewhere are kinds whose CRD is in no Go module used here: OLM's own library validates the first (hack/olm), a
// test of this package the second as far as the chart renders it.
var judgedElsewhere = []string{"ClusterServiceVersion", "GrafanaDashboard"}

// golden are the files of the controllers' tests with objects written by an operator, without kind and apiVersion.
var golden = map[string]string{
	"client_service": "apiVersion: v1\nkind: Service\n", "headless_service": "apiVersion: v1\nkind: Service\n", "serviceaccount": "apiVersion: v1\nkind: ServiceAccount\n",
	"role": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n", "rolebinding": "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n",
	"statefulset": "apiVersion: apps/v1\nkind: StatefulSet\n", "deployment": "apiVersion: apps/v1\nkind: Deployment\n", "job": "apiVersion: batch/v1\nkind: Job\n",
	"poddisruptionbudget": "apiVersion: policy/v1\nkind: PodDisruptionBudget\n", "gridpartition": "apiVersion: ordergrid.dev/v1alpha1\nkind: GridPartition\n",
	"channel_configmap": "apiVersion: v1\nkind: ConfigMap\n", "run_configmap": "apiVersion: v1\nkind: ConfigMap\n", "authorization": "apiVersion: v1\nkind: ConfigMap\n",
	"network-policy": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n", "networkpolicy": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n",
	"external_service": "apiVersion: v1\nkind: Service\n",
	"service":          "apiVersion: v1\nkind: Service\n",
}

// conform is a directory of manifests, another of schemas, and the program.
type conform struct {
	program, manifests, schemas string
	core                        *coreSchemas
	known                       map[string]bool // files of schemas
	seen                        map[string]bool // documents
	files                       int             // of manifests
}

// TestKubeconform: kubeconform accepts every manifest of the repository and the chart with every switch, with unknown
// fields as errors. It downloads nothing.
func TestKubeconform(t *testing.T) {
	c := newConform(t)
	count := c.addTree(t, envtest.Root())
	if count < 50 {
		t.Errorf("%d manifests: this test no longer sees them", count)
	}
	for _, s := range switches {
		for _, set := range [][]string{s.base, slices.Concat(s.base, s.set)} {
			out, err := template(t, templated(set...))
			if err != nil {
				t.Fatalf("%v: %v\n%s", set, err, out)
			}
			c.add(t, "chart "+strings.Join(set, " "), []byte(out))
		}
	}
	out, err := c.run(t)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%d files of the repository, %d switches of the chart: %s", count, len(switches), out)

	wrong := c.others(t)
	wrong.add(t, "wrong field", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replica: 1, selector: {}, template: {}}\n"))
	wrong.add(t, "wrong grid", []byte("apiVersion: ordergrid.dev/v1alpha1\nkind: OrderGrid\nmetadata: {name: a}\nspec: {security: {insecure: Accept}, shard: 1}\n"))
	wrong.add(t, "wrong type", []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: http}]}\n"))
	if out, err := wrong.run(t); err == nil || strings.Count(out, " is invalid: ") != 3 {
		t.Errorf("three wrong manifests: %v\n%s", err, out)
	}
}

func newConform(t *testing.T) *conform {
	t.Helper()
	c := &conform{program: filepath.Join(t.TempDir(), "kubeconform"), manifests: t.TempDir(), schemas: t.TempDir(), known: map[string]bool{}, seen: map[string]bool{}}
	build := exec.CommandContext(t.Context(), "go", "build", "-modfile=hack/tools/go.mod", "-o", c.program, "github.com/yannh/kubeconform/cmd/kubeconform")
	build.Dir, build.Env = envtest.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kubeconform: %v\n%s", err, out)
	}
	c.readCore(t)
	for _, pattern := range []string{"charts/ordergrid/files/crds/*.yaml", "charts/testdata/prometheus-operator/*.yaml", "e2e/cluster/local/testdata/golden/multus.yaml"} {
		files, err := filepath.Glob(filepath.Join(envtest.Root(), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c.addCRDs(t, data)
		}
	}
	chaos, err := crds.Objects(t.Context(), envtest.Root())
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range chaos {
		c.addCRD(t, crd)
	}
	return c
}

// others judges other manifests by the same schemas.
func (c *conform) others(t *testing.T) *conform {
	o := *c
	o.manifests, o.files, o.seen = t.TempDir(), 0, map[string]bool{}
	return &o
}

// readCore reads the OpenAPI document of the Kubernetes that the local cluster is built from, from its module.
func (c *conform) readCore(t *testing.T) {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/kubernetes")
	download.Dir = filepath.Join(envtest.Root(), "e2e", "cluster", "binaries")
	out, err := download.Output()
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr != nil || err != nil || module.Error != "" {
		t.Fatalf("go mod download k8s.io/kubernetes: %v %s", err, module.Error)
	}
	document, err := os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	if c.core, err = readCoreSchemas(document); err != nil {
		t.Fatal(err)
	}
}

// addCRDs adds the schemas of the CRDs among documents.
func (c *conform) addCRDs(t *testing.T, documents []byte) {
	t.Helper()
	for document := range bytes.SplitSeq(documents, []byte("\n---")) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(document, crd); err == nil && crd.Kind == "CustomResourceDefinition" {
			c.addCRD(t, crd)
		}
	}
}

func (c *conform) addCRD(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	kinds, err := writeCRDSchemas(c.schemas, crd)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		c.known[schemaFile(kind)] = true
	}
}

// addTree adds the manifests tracked by git.
func (c *conform) addTree(t *testing.T, root string) (count int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "out", "bin"}, name) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") ||
			slices.ContainsFunc(noManifests, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file := strings.TrimSuffix(entry.Name(), ".yaml")
		head, known := golden[file]
		if !known && !strings.HasPrefix(name, "charts/") { // such as sink_db_job
			head, known = golden[file[strings.LastIndex(file, "_")+1:]]
		}
		if !known {
			head = golden[filepath.Base(filepath.Dir(name))] // of one kind in several forms
		}
		c.add(t, name, append([]byte(head), data...))
		count++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// add adds documents, and the schemas of Kubernetes' own kinds among them.
func (c *conform) add(t *testing.T, name string, documents []byte) {
	t.Helper()
	var fresh [][]byte
	for document := range bytes.SplitSeq(documents, []byte("\n---")) {
		if c.seen[string(document)] { // most of the chart is the same with any value
			continue
		}
		c.seen[string(document)] = true
		fresh = append(fresh, document)
		object := metav1.TypeMeta{}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kind := object.GroupVersionKind()
		if kind.Kind == "" && len(bytes.TrimSpace(document)) > 0 && !isComment(document) {
			t.Errorf("%s has no kind: put it into golden if an operator writes it, or into noManifests", name)
		}
		if file := schemaFile(kind); c.core.Has(kind) && !c.known[file] {
			if err := c.core.Write(c.schemas, kind); err != nil {
				t.Fatal(err)
			}
			c.known[file] = true
		}
	}
	if len(fresh) == 0 {
		return
	}
	file := strings.NewReplacer("/", "_", " ", "_").Replace(strings.TrimSuffix(name, ".yaml"))
	c.files++
	path := filepath.Join(c.manifests, fmt.Sprintf("%03d_%.150s.yaml", c.files, file)) // a name may be long, and share a prefix with another
	if err := os.WriteFile(path, bytes.Join(fresh, []byte("\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// isComment reports whether there is nothing but comments.
func isComment(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("---")) {
			return false
		}
	}
	return true
}

func (c *conform) run(t *testing.T) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), c.program, "-strict", "-summary", "-skip", strings.Join(judgedElsewhere, ","), "-schema-location", filepath.Join(c.schemas, schemaLocation), c.manifests).CombinedOutput()
	return string(out), err
}
