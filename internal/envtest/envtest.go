// Package envtest runs a real etcd and kube-apiserver with OrderGrid's CRDs for the tests of one package.
//
//	func TestMain(m *testing.M) { os.Exit(envtest.Run(m)) }
//	func TestX(t *testing.T)    { cfg := envtest.Config(t); … }
//
// The programs are looked for in $KUBEBUILDER_ASSETS, then where `go run ./e2e/cluster/cmd/cluster binaries` puts them.
// Where there are none a test is skipped; with CI=true or ORDERGRID_REQUIRE_ENVTEST=1 it fails instead.
package envtest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

const startTimeout = 3 * time.Minute

var server struct {
	sync.Once
	env *envtest.Environment
	cfg *rest.Config
	err error

	withoutCRDs bool
	more        []*apiextensionsv1.CustomResourceDefinition
	dirs        []string
}

// Option configures the API server of a package's tests.
type Option func()

// WithoutCRDs leaves the CRDs to the test, which installs them with the chart.
func WithoutCRDs() { server.withoutCRDs = true }

// WithMoreCRDs installs further CRDs in addition to OrderGrid's.
func WithMoreCRDs(crds ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func() { server.more = append(server.more, crds...) }
}

// WithCRDsIn installs the CRDs in the YAML files of a directory in addition to OrderGrid's.
func WithCRDsIn(dir string) Option {
	return func() { server.dirs = append(server.dirs, dir) }
}

// Run runs the tests and stops the API server if one of them started it. Its result is for os.Exit.
func Run(m *testing.M, options ...Option) int {
	for _, o := range options {
		o()
	}
	code := m.Run()
	if server.env != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			return max(code, 1)
		}
	}
	return code
}

// Config is the administrator's access to the API server, which is started by the first call.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	assets := Assets(t)
	server.Do(func() {
		server.env = &envtest.Environment{
			BinaryAssetsDirectory: assets,
			// Seconds on an idle machine; with other load it may take a minute.
			ControlPlaneStartTimeout: startTimeout,
			ControlPlaneStopTimeout:  startTimeout,
			CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startTimeout, CRDs: server.more},
			CRDDirectoryPaths:        server.dirs, ErrorIfCRDPathMissing: true,
		}
		if !server.withoutCRDs {
			server.env.CRDDirectoryPaths = append(server.env.CRDDirectoryPaths, CRDs())
		}
		server.cfg, server.err = server.env.Start()
	})
	if server.err != nil {
		t.Fatalf("start etcd and kube-apiserver from %s: %v", assets, server.err)
	}
	cfg := rest.CopyConfig(server.cfg)
	// Tests wait for the API server, not for the client's own rate limit.
	cfg.QPS = -1
	return cfg
}

// Kubeconfig is the path of a kubeconfig file with the administrator's access, for programs such as helm.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	Config(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, server.env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Assets is the directory with etcd, kube-apiserver, kubectl and helm. Without it the test is
// skipped or fails.
func Assets(t testing.TB) string {
	t.Helper()
	dir, err := FindAssets()
	if err == nil {
		return dir
	}
	if os.Getenv("CI") == "true" || os.Getenv("ORDERGRID_REQUIRE_ENVTEST") == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
	return ""
}

// FindAssets is Assets for programs other than tests.
func FindAssets() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(cache, "ordergrid", "bin", "current")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
		return "", fmt.Errorf("no kube-apiserver: %w; run `go run ./e2e/cluster/cmd/cluster binaries`, or set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver", err)
	}
	return dir, nil
}

// CRDs is the directory of the generated CRDs, the chart's own copy.
func CRDs() string { return filepath.Join(Root(), "charts", "ordergrid", "files", "crds") }

// Root is the top of the checkout that the test runs in.
func Root() string {
	root, err := checkout.Root()
	if err != nil {
		panic(err) // a test runs in the directory of its package
	}
	return root
}

// Scheme has Kubernetes' own kinds and OrderGrid's.
func Scheme() *apiruntime.Scheme {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of one name: a programming error
		}
	}
	return scheme
}
