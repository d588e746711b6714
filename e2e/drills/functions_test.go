//go:build e2e

package drills

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

const (
	deskTag, stampTag = 10001, 10002
	desk              = "DESK-7"
)

// callbacks kills the primary of a grid that calls functions, and replaces all its pods: two decide on each order, two record
// it on every copy. The certificate has to say that all of it is there.
func callbacks(ctx context.Context, f *field) {
	f.deployFunctions(ctx)
	f.grow(ctx, "  memory: 512Mi\n", fmt.Sprintf(`  memory: 512Mi
  callbacks:
    stampTag: %d
    pre: [{name: fat-finger}, {name: enrich-client}]
    post: [{name: audit-trail}, {name: count-accounts}]
`, stampTag))
	f.Must(f.Kube.Run(ctx, "wait", "ordergrid/"+grid, "-n", namespace, "--for=condition=FunctionsLoaded", "--timeout=3m"))
	d := &api.FailoverDrill{}
	d.Name = "callbacks"
	d.Spec.Repetitions, d.Spec.Traffic.RatePerProbe = new(int32(2)), new(int32(300))
	d.Spec.SteadyState.Calm.Duration = 3 * time.Second
	d.Spec.Faults = []api.DrillFault{
		{Name: "kill", Type: api.FaultContainerKill},
		{Name: "replace-all", Type: api.FaultRollingUpdate},
	}
	f.create(ctx, d)
	d = f.follow(ctx, d.Name)
	f.sound(ctx, d)
	if c := d.Status.Certificate; c.Verdict != api.DrillPass {
		f.Errorf("verdict %s: %s", c.Verdict, c.Reason)
	}
	f.functionsWhole(d.Name)
}

// functionsWhole checks the account of functions of a certificate that was fetched.
func (f *field) functionsWhole(drill string) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.out, drill, certificate.JSONFile))
	if err != nil {
		f.Fatal(err)
	}
	var c certificate.Certificate
	if err := json.Unmarshal(text, &c); err != nil || c.Functions == nil {
		f.Fatalf("certificate.json has no functions: %v", err)
	}
	x := c.Functions
	f.Logf("functions: %+v", x)
	if x.Unstamped+x.Different+x.Missing+x.Broken+x.Failed != 0 || x.Decided < c.Orders.Acknowledged || x.Copies < 2 || x.Linked == 0 || x.Control.Result != certificate.ControlPassed {
		f.Errorf("functions %+v of %d acknowledged orders", x, c.Orders.Acknowledged)
	}
	if len(x.Chains) != 1 || !slices.Contains(x.Values, certificate.SetValue{Tag: deskTag, Value: desk, Orders: x.Decided}) {
		f.Errorf("decided by chains %q, set in the orders are %+v, want one chain, and %d=%s in all", x.Chains, x.Values, deskTag, desk)
	}
}

// deployFunctions puts the examples into the namespace.
func (f *field) deployFunctions(ctx context.Context) {
	f.Helper()
	files := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "functions", Namespace: namespace}, BinaryData: map[string][]byte{}}
	file := func(name string, content []byte) api.FunctionFile {
		files.BinaryData[name] = content
		return api.FunctionFile{ConfigMap: api.ConfigMapFile{Name: files.Name, Key: name}, SHA256: fmt.Sprintf("%x", sha256.Sum256(content))}
	}
	var objects []any
	function := func(name string, spec api.GridFunctionSpec, module []byte, config string) {
		m := file(name+".wasm", module)
		spec.Module = api.FunctionModule{ConfigMap: &m.ConfigMap, SHA256: m.SHA256}
		if config != "" {
			c := file(name+".conf", []byte(config))
			spec.Config = &c
		}
		objects = append(objects, &api.GridFunction{TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "GridFunction"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec})
	}
	function("fat-finger", api.GridFunctionSpec{Kind: api.FunctionPre}, examples.FatFinger, "quantity=1000000\n")
	function("enrich-client", api.GridFunctionSpec{Kind: api.FunctionPre, SetTags: []int32{deskTag}}, examples.EnrichClient, "ACCT-00012345="+desk+"\n")
	function("audit-trail", api.GridFunctionSpec{Kind: api.FunctionPost, Fuel: 500_000}, examples.AuditTrail, "")
	function("count-accounts", api.GridFunctionSpec{Kind: api.FunctionPost}, examples.CountAccounts, "")
	for _, o := range append([]any{files}, objects...) {
		text, err := json.Marshal(o)
		if err != nil {
			f.Fatal(err)
		}
		f.Must(f.Kube.Apply(ctx, text))
	}
	for _, name := range []string{"fat-finger", "enrich-client", "audit-trail", "count-accounts"} {
		f.Must(f.Kube.Run(ctx, "wait", "gridfunction/"+name, "-n", namespace, "--for=condition=Valid", "--timeout=2m"))
	}
}
