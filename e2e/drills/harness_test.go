//go:build e2e

package drills

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/fixture"
)

const (
	namespace = "ordergrid-drills"
	grid      = "plug"
)

// field is the cluster with everything a drill needs on it.
type field struct {
	*fixture.Fixture
	plugin string // kubectl-ordergrid
	out    string // out/drills
	mesh   *chaosmesh.Mesh
}

// prepare installs Chaos Mesh, the chart, an executor and the namespace. All of it goes when the test ends, but for the chart,
// and for a Chaos Mesh that was there before.
func prepare(ctx context.Context, t *testing.T) *field {
	t.Helper()
	f := &field{Fixture: fixture.New(t, namespace), plugin: filepath.Join(t.TempDir(), "kubectl-ordergrid")}
	f.out = filepath.Join(f.Root, "out", "drills")
	f.build("./cmd/kubectl-ordergrid", f.plugin)
	var err error
	if f.mesh, err = chaosmesh.Open(ctx, cluster.Options{Root: f.Root, Out: io.Discard, Progress: os.Stderr}, t.Logf); err != nil {
		t.Fatal(err)
	}
	before, err := f.mesh.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.mesh.Install(ctx); err != nil {
		t.Fatal(err)
	}
	if !before.Installed {
		t.Cleanup(func() { f.removeMesh() })
	}
	executor := f.startExecutor(ctx)
	t.Cleanup(func() { // after the namespace
		ctx, cancel := context.WithTimeout(context.Background(), fixture.Patience)
		defer cancel()
		f.removeVolumes(ctx)
	})
	// One of two operators may be on the machine that is broken.
	f.Open(ctx, append([]string{"replicas=2", "drills.namespaces={" + namespace + "}",
		"drills.allow." + namespace + "={APIServerOutage,NodeLinkDown,NodePowerOff}"}, executor...)...)
	return f
}

// on is the field for one part.
func (f *field) on(t *testing.T) *field {
	part := *f
	part.Fixture = f.On(t)
	return &part
}

func (f *field) build(pkg, to string) {
	f.Helper()
	cmd := exec.Command("go", "build", "-o", to, pkg)
	cmd.Dir = f.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
}

func (f *field) removeMesh() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := f.mesh.Uninstall(ctx); err != nil {
		f.Error(err)
	}
}

// grow recreates the grid and waits until it is redundant; change may alter the manifest.
func (f *field) grow(ctx context.Context, change ...string) {
	f.Helper()
	f.plant(ctx, "testdata/grid.yaml", change...)
}

// plant is grow with the grid of a file.
func (f *field) plant(ctx context.Context, file string, change ...string) {
	f.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	text := strings.NewReplacer(change...).Replace(string(manifest))
	f.Must(f.Kube.Run(ctx, "delete", "ordergrid", grid, "-n", namespace, "--ignore-not-found", "--wait"))
	f.layVolumes(ctx)
	f.Must(f.Kube.Apply(ctx, []byte(text)))
	condition := "Redundant"
	if strings.Contains(text, "replicas: 1") {
		condition = "Available"
	}
	f.Must(f.Kube.Run(ctx, "wait", "ordergrid/"+grid, "-n", namespace, "--for=condition="+condition, "--timeout=3m"))
}

// run is `kubectl ordergrid drill run` to its end: the drill as it is then, and the exit code.
func (f *field) run(ctx context.Context, name string, args ...string) (*api.FailoverDrill, int) {
	f.Helper()
	folder := filepath.Join(f.out, name)
	f.Must(f.Kube.Run(ctx, "delete", "failoverdrill", name, "-n", namespace, "--ignore-not-found", "--wait"))
	args = append([]string{"drill", "run", args[0], "--name", name, "--grid", grid, "-n", namespace, "-f", "--out", folder}, args[1:]...)
	text, code, err := f.ordergrid(ctx, args...)
	f.Logf("$ kubectl ordergrid %s\n%s\nexit code %d", strings.Join(args, " "), text, code)
	if err != nil {
		f.Fatal(err)
	}
	return f.drill(ctx, name), code
}

// ordergrid runs the plugin.
func (f *field) ordergrid(ctx context.Context, args ...string) (text string, code int, err error) {
	cmd := exec.CommandContext(ctx, f.plugin, args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return both.String(), exit.ExitCode(), nil
	}
	return both.String(), 0, err
}

func (f *field) drill(ctx context.Context, name string) *api.FailoverDrill {
	f.Helper()
	d := &api.FailoverDrill{}
	if err := f.Kube.Get(ctx, d, "failoverdrill", name, "-n", namespace); err != nil {
		f.Fatal(err)
	}
	return d
}

// sound checks what must hold whatever the machine's speed: nothing lost, repeated, missing or out of order, every fault
// seen to have hit, and nothing of it left. Goals of time are the certificate's to judge, on a machine that has time.
func (f *field) sound(ctx context.Context, d *api.FailoverDrill) {
	f.Helper()
	c := d.Status.Certificate
	if c == nil {
		f.Fatalf("no certificate: %+v", d.Status.Conditions)
	}
	f.Logf("%s: %s: %s\ncreated %d, acknowledged %d, lost %d, duplicated %d, gaps %d, out of order %d; negative control: %s",
		d.Name, c.Verdict, c.Reason, c.Created, c.Acknowledged, c.Lost, c.Duplicated, c.Gaps, c.OutOfOrder, c.NegativeControl)
	if c.Lost+c.Missing+c.Duplicated+c.Gaps+c.OutOfOrder != 0 || c.Verdict == api.DrillViolated {
		f.Errorf("%s: a promise about orders was broken", d.Name)
	}
	if c.Acknowledged == 0 || d.Status.FinishedSteps != d.Status.PlannedSteps {
		f.Errorf("%s: %d orders acknowledged, %d of %d steps", d.Name, c.Acknowledged, d.Status.FinishedSteps, d.Status.PlannedSteps)
	}
	for i := range d.Status.Steps {
		s := &d.Status.Steps[i]
		if s.Outcome == api.StepRefused {
			continue // a fault that was not injected leaves no trace
		}
		if s.Witness == nil || s.Witness.State != api.WitnessSeen {
			f.Errorf("%s, step %d %s: no witness that it hit: %+v; %s", d.Name, s.Index, s.Fault, s.Witness, s.Message)
		}
	}
	f.clean(ctx)
	f.validates(ctx, d)
}

// clean fails if a fault is left.
func (f *field) clean(ctx context.Context) {
	f.Helper()
	left, err := f.left(ctx)
	if err != nil {
		f.Fatal(err)
	}
	for _, o := range left {
		f.Errorf("left behind: %s", o)
	}
}

// left lists the faults there are. Chaos Mesh's own object of a pod stays as long as the pod, and lists what is in force in
// its network: ipsets, rules, queues. Empty, it is none.
func (f *field) left(ctx context.Context) (names []string, err error) {
	objects, err := f.mesh.Faults(ctx)
	for _, o := range objects {
		spec, _, _ := unstructured.NestedMap(o.Object, "spec") // another shape is a fault
		if o.GetKind() == "PodNetworkChaos" && spec != nil && !holds(spec, "ipsets") && !holds(spec, "iptables") && !holds(spec, "tcs") {
			continue
		}
		names = append(names, fmt.Sprintf("%s %s/%s %v", o.GetKind(), o.GetNamespace(), o.GetName(), spec))
	}
	return names, err
}

func holds(spec map[string]any, list string) bool {
	entries, found, err := unstructured.NestedSlice(spec, list)
	return err != nil || found && len(entries) > 0
}

// validates judges the saved history again, without the cluster.
func (f *field) validates(ctx context.Context, d *api.FailoverDrill) {
	f.Helper()
	text, code, err := f.ordergrid(ctx, "drill", "validate", filepath.Join(f.out, d.Name))
	if want := map[api.DrillVerdict]int{api.DrillPass: 0, api.DrillViolated: 1, api.DrillMissed: 1, api.DrillInvalid: 3}[d.Status.Certificate.Verdict]; err != nil || code != want {
		f.Errorf("drill validate %s: exit code %d, want %d (%v)\n%s", d.Name, code, want, err, text)
	}
}

// create makes a drill without following it.
func (f *field) create(ctx context.Context, d *api.FailoverDrill) {
	f.Helper()
	f.Must(f.Kube.Run(ctx, "delete", "failoverdrill", d.Name, "-n", namespace, "--ignore-not-found", "--wait"))
	d.APIVersion, d.Kind, d.Namespace, d.Spec.GridRef.Name = api.GroupVersion.String(), "FailoverDrill", namespace, grid
	text, err := json.Marshal(d)
	if err != nil {
		f.Fatal(err)
	}
	f.Must(f.Kube.Apply(ctx, text))
}

// follow is `kubectl ordergrid drill follow` to the end.
func (f *field) follow(ctx context.Context, name string) *api.FailoverDrill {
	f.Helper()
	text, code, err := f.ordergrid(ctx, "drill", "follow", name, "-n", namespace, "--out", filepath.Join(f.out, name))
	f.Logf("$ kubectl ordergrid drill follow %s\n%s\nexit code %d", name, text, code)
	if err != nil {
		f.Fatal(err)
	}
	return f.drill(ctx, name)
}
