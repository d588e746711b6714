// Package site is where a suite stands: the cluster of $KUBECONFIG with OrderGrid's chart on it, and a namespace of the suite's
// own, which goes with everything in it when the suite ends. Suites do what they do with kubectl and helm of $PATH, as a user
// would.
package site

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

// Patience is how long anything that the cluster is to do may take.
const Patience = 4 * time.Minute

// Site is a namespace on a cluster.
type Site struct {
	*testing.T
	Kube      kube.Cluster
	Root      string // of the checkout
	Chart     kube.Chart
	Namespace string
}

// New is the site without anything on the cluster yet.
func New(t *testing.T, namespace string) *Site {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	return &Site{T: t, Root: root, Chart: kube.OwnChart(root), Namespace: namespace}
}

// Open makes the namespace and installs the chart with values, each as in NAME=VALUE. The chart stays when the test ends: the
// next suite upgrades it.
func (s *Site) Open(ctx context.Context, values ...string) {
	s.Helper()
	s.Chart.Set = append(s.Chart.Set, values...)
	s.Cleanup(s.close)
	// The operator's rights for drills are in the namespace that its values name, which has to be there first.
	s.Must(s.Kube.Apply(ctx, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, s.Namespace)))
	s.Must(s.Kube.Install(ctx, s.Chart))
}

// close removes the namespace. The test's own context is over by then.
func (s *Site) close() {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if _, err := s.Kube.Run(ctx, "delete", "namespace", s.Namespace, "--ignore-not-found", "--wait", "--timeout=3m"); err != nil {
		s.Error(err)
	}
}

// Restrict has Kubernetes refuse pods in the namespace that do not pass the Restricted Pod Security Standard.
func (s *Site) Restrict(ctx context.Context) {
	s.Helper()
	s.Must(s.Kube.Run(ctx, "label", "namespace", s.Namespace, "--overwrite",
		"pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted"))
}

// On is the site for a part of the test.
func (s *Site) On(t *testing.T) *Site {
	part := *s
	part.T = t
	return &part
}

// Part of a suite.
type Part struct {
	Name string
	Run  func(context.Context, *Site)
}

// Parts are run in order; each needs the one before, so the first that fails is the last, and what there is by then is
// shown.
func (s *Site) Parts(ctx context.Context, parts ...Part) {
	for _, p := range parts {
		if !s.Run(p.Name, func(t *testing.T) { p.Run(ctx, s.On(t)) }) {
			s.Show(ctx)
			s.FailNow()
		}
	}
}

// Must fails the test on an error, and is the text otherwise.
func (s *Site) Must(text string, err error) string {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// Apply is `kubectl apply` of a file of the suite's testdata.
func (s *Site) Apply(ctx context.Context, file string) {
	s.Helper()
	manifest, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		s.Fatal(err)
	}
	s.Log(s.Must(s.Kube.Apply(ctx, manifest)))
}

// Eventually asks until there is no error, and fails the test with the last one after limit.
func (s *Site) Eventually(ctx context.Context, what string, limit time.Duration, check func(context.Context) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := kube.WaitFor(ctx, what, func(text string) { s.Log(text) }, func(ctx context.Context) (bool, string, error) {
		err := check(ctx)
		return err == nil, "", err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// Condition waits until a condition has a status, and gives "STATUS REASON MESSAGE".
func (s *Site) Condition(ctx context.Context, kind, name, condition, status string) (text string) {
	s.Helper()
	s.Eventually(ctx, fmt.Sprintf("%s of %s/%s being %s", condition, kind, name, status), Patience, func(ctx context.Context) (err error) {
		text, err = s.Kube.Run(ctx, "get", kind, name, "-n", s.Namespace, "-o",
			fmt.Sprintf(`jsonpath={range .status.conditions[?(@.type=="%s")]}{.status} {.reason} {.message}{end}`, condition))
		if err == nil && !strings.HasPrefix(text, status+" ") {
			err = fmt.Errorf("%s: %s", condition, text)
		}
		return err
	})
	s.Logf("%s/%s %s: %s", kind, name, condition, text)
	return text
}

// Verify is `kubectl ordergrid verify GRID`: the logs of all copies, byte for byte.
func (s *Site) Verify(ctx context.Context, grid string) {
	s.Helper()
	cmd := exec.CommandContext(ctx, "go", "run", "./cmd/kubectl-ordergrid", "verify", grid, "-n", s.Namespace)
	cmd.Dir = s.Root
	out, err := cmd.CombinedOutput()
	s.Logf("$ kubectl ordergrid verify %s\n%s", grid, out)
	if err != nil {
		s.Fatal(err)
	}
}

// Show is what a user would look at.
func (s *Site) Show(ctx context.Context) {
	s.Helper()
	out, err := s.Kube.Run(ctx, "get", "og,gp,op,fd,sts,pods", "-n", s.Namespace, "-o", "wide")
	s.Logf("$ kubectl get og,gp,op,fd,sts,pods -n %s -o wide (%v)\n%s", s.Namespace, err, out)
}
