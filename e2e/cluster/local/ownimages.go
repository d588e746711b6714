package local

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/ordergrid/ordergrid/e2e/cluster/image"
)

//go:embed images
var imageFiles embed.FS

// ownImages writes the archives of the images the cluster itself needs and
// returns them by reference.
func ownImages(plan *Plan) (map[string]string, error) {
	archives := map[string]string{}
	for _, name := range []string{"pause", "coredns"} {
		source, err := imageFiles.ReadFile("images/" + name + "/Dockerfile")
		if err != nil {
			return nil, err
		}
		dockerfile, err := image.Parse(bytes.NewReader(source))
		if err != nil {
			return nil, fmt.Errorf("the Dockerfile of %s: %w", name, err)
		}
		ref := plan.image(name)
		archive := filepath.Join(plan.State, "images", name+"-"+filepath.Base(plan.Bin)+".tar")
		archives[ref] = archive
		if exists(archive) {
			continue
		}
		if _, err := image.WriteFile(archive, dockerfile, plan.Bin, ref, runtime.GOARCH); err != nil {
			return nil, err
		}
	}
	return archives, nil
}

// applyDNS creates or corrects the cluster's own objects.
func applyDNS(ctx context.Context, plan *Plan) error {
	return plan.kubectlApply(ctx, "coredns.yaml", dnsSettings{
		DNS: plan.dnsAddr().String(), DNSImage: plan.image("coredns"), DNSReplicas: min(2, len(plan.Nodes)),
	})
}
