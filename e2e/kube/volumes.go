package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SharedVolumes are volumes for the sinks or journals of a grid's pods that every machine of the local cluster sees under the same path,
// as storage on a network would be: their files outlive pods and machines.
type SharedVolumes struct {
	Namespace string
	Class     string   // storage class of the grid; names of volumes begin with it
	Folder    string   // on this machine; it is the volumes' own
	Pods      []string // names
	Claim     string   // name of the claim template; empty: that of the sink named file, "sink"
}

func (v *SharedVolumes) claim() string { return cmp.Or(v.Claim, "sink") }

// BesideState is a folder beside the local cluster's own state, from $KUBECONFIG.
func BesideState(name string) string {
	return filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), name)
}

const sharedVolumeYAML = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[3]s-%[1]s}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: %[3]s
  claimRef: {namespace: %[2]s, name: %[5]s-%[1]s}
  hostPath: {path: %[4]s}
`

// LayVolumes makes them, empty.
func (c Cluster) LayVolumes(ctx context.Context, v SharedVolumes) error {
	if err := c.RemoveVolumes(ctx, v); err != nil {
		return err
	}
	var manifest strings.Builder
	for _, pod := range v.Pods {
		path := filepath.Join(v.Folder, pod)
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o777); err != nil { // the user pods run as
			return err
		}
		fmt.Fprintf(&manifest, sharedVolumeYAML, pod, v.Namespace, v.Class, path, v.claim())
	}
	_, err := c.Apply(ctx, []byte(manifest.String()))
	return err
}

// RemoveVolumes takes claims, volumes and files away.
func (c Cluster) RemoveVolumes(ctx context.Context, v SharedVolumes) error {
	claims, volumes := []string{"delete", "persistentvolumeclaim"}, []string{"delete", "persistentvolume"}
	for _, pod := range v.Pods {
		claims, volumes = append(claims, v.claim()+"-"+pod), append(volumes, v.Class+"-"+pod)
	}
	_, err := c.Run(ctx, append(claims, "-n", v.Namespace, "--ignore-not-found", "--wait", "--timeout=1m")...)
	if err == nil {
		_, err = c.Run(ctx, append(volumes, "--ignore-not-found", "--wait", "--timeout=1m")...)
	}
	return errors.Join(err, os.RemoveAll(v.Folder))
}
