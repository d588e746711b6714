//go:build e2e

package drills

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// A volume that every machine of the local cluster sees under the same path, as storage on a network would be.
const volumeYAML = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: drills-%[1]s}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ordergrid-drills
  claimRef: {namespace: %[2]s, name: sink-%[1]s}
  hostPath: {path: %[3]s}
`

// mostCopies of a grid here.
const mostCopies = 3

// sinkFolder holds the files of the sinks, beside the cluster's own state.
func (f *field) sinkFolder() string {
	return filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "drill-sinks")
}

// layVolumes makes empty volumes for the pods of the grid.
func (f *field) layVolumes(ctx context.Context) {
	f.Helper()
	f.removeVolumes(ctx)
	var manifest strings.Builder
	for i := range mostCopies {
		pod := api.PodName(grid, 0, int32(i))
		path := filepath.Join(f.sinkFolder(), pod)
		if err := os.MkdirAll(path, 0o777); err != nil {
			f.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil { // the user pods run as
			f.Fatal(err)
		}
		fmt.Fprintf(&manifest, volumeYAML, pod, namespace, path)
	}
	f.must(f.kube.Apply(ctx, []byte(manifest.String())))
}

func (f *field) removeVolumes(ctx context.Context) {
	f.Helper()
	for i := range mostCopies {
		pod := api.PodName(grid, 0, int32(i))
		f.must(f.kube.Run(ctx, "delete", "persistentvolumeclaim", "sink-"+pod, "-n", namespace, "--ignore-not-found", "--wait", "--timeout=1m"))
		f.must(f.kube.Run(ctx, "delete", "persistentvolume", "drills-"+pod, "--ignore-not-found", "--wait", "--timeout=1m"))
	}
	if err := os.RemoveAll(f.sinkFolder()); err != nil {
		f.Fatal(err)
	}
}
