package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// Versions the link step writes into the programs; TestVersionsMatchModule
// keeps them equal to the module's go.mod.
const (
	kubernetesVersion = "v1.36.3"
	helmVersion       = "v3.21.2"
)

// kubeMains are built in this order, the longest first.
var kubeMains = []string{"./cmd/hyperkube", "./cmd/coredns", "helm.sh/helm/v3/cmd/helm", "./cmd/pause"}

// hyperkubeNames are the names hyperkube answers to. A directory with them can serve as
// KUBEBUILDER_ASSETS for envtest.
var hyperkubeNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"}

// kubeVersions are the linker's flags that set the versions.
func kubeVersions() string {
	var ld strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		fmt.Fprintf(&ld, " -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=36 -X %[1]s.gitTreeState=clean -X %[1]s.buildDate=1970-01-01T00:00:00Z",
			pkg, kubernetesVersion)
	}
	ld.WriteString(" -X helm.sh/helm/v3/internal/version.version=" + helmVersion)
	// What `helm template` and `helm lint` take the cluster's version to be.
	for _, pkg := range []string{"helm.sh/helm/v3/pkg/lint/rules", "helm.sh/helm/v3/pkg/chartutil"} {
		fmt.Fprintf(&ld, " -X %[1]s.k8sVersionMajor=1 -X %[1]s.k8sVersionMinor=36", pkg)
	}
	return ld.String()
}

var kubePrograms = artifact.Set{
	Module: "e2e/cluster/binaries", Cache: "bin",
	What:  "Kubernetes " + kubernetesVersion + ", etcd, CoreDNS and helm " + helmVersion,
	Mains: kubeMains, LDFlags: kubeVersions(), Programs: []string{"hyperkube", "coredns", "helm", "pause"}, Links: hyperkubeNames, LinkTo: "hyperkube",
}

// ProgramsDir returns where the programs of the checkout at root are, or will be once
// Ensure has run. It does not build.
func ProgramsDir(ctx context.Context, root string) (string, error) {
	return kubePrograms.Dir(ctx, root)
}

// EnsurePrograms builds the programs unless the cache holds them and returns their
// directory; see artifact.Set.Ensure.
func EnsurePrograms(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	return kubePrograms.Ensure(ctx, root, report)
}

// ProgramNames lists the programs by the names they are called by.
func ProgramNames() string {
	return strings.Join(append([]string{"coredns", "helm"}, hyperkubeNames...), " ")
}
