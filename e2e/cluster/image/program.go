package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// Registry is the name all images of the product begin with. Nothing is served
// under it: images reach the nodes as archives, or from the user's own registry.
const Registry = "ordergrid.dev"

// Names lists the images of the checkout: the directories below images/.
func Names(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "images", "*", "Dockerfile"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no images/*/Dockerfile in %s", root)
	}
	slices.Sort(names)
	return names, nil
}

// variant is an image of a program that is built otherwise than for a release.
// It is built only by name.
type variant struct{ program, dockerfile, tags string }

var variants = map[string]variant{
	// It can be configured to lose orders: the negative control of a drill.
	"grid-node-faulty": {program: "grid-node", dockerfile: "Dockerfile.faulty", tags: "faulty"},
}

// BuildProgram compiles the programs of an image, which images/<name>/Dockerfile
// copies from cmd/<program>, and writes it as an archive; or a variant of a
// program. Its bill of materials is written beside it (SBOMFile). It returns the
// image's id. The same commit, Go version and platform give the same id, and the
// same bytes in both files.
func BuildProgram(ctx context.Context, root, name, tag, archive string) (id string, err error) {
	v, ok := variants[name]
	if !ok {
		v = variant{program: name, dockerfile: "Dockerfile"}
	}
	file, err := os.Open(filepath.Join(root, "images", v.program, v.dockerfile))
	if errors.Is(err, os.ErrNotExist) {
		names, _ := Names(root)
		return "", fmt.Errorf("no image %q; there are %s, and for tests %s", name, strings.Join(names, ", "), strings.Join(slices.Sorted(maps.Keys(variants)), ", "))
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	dockerfile, err := Parse(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file.Name(), err)
	}
	work, err := os.MkdirTemp("", "ordergrid-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	dockerfile.Labels[labelVersion] = version(ctx, root)
	for _, c := range dockerfile.Copies {
		if err := compile(ctx, root, c.Source, v.tags, dockerfile.Labels[labelVersion], work); err != nil {
			return "", err
		}
	}
	ref := Registry + "/" + name + ":" + tag
	if id, err = WriteFile(archive, dockerfile, work, ref, runtime.GOARCH); err != nil {
		return "", err
	}
	bom, err := BillOfMaterials(dockerfile, work, ref, id)
	if err == nil {
		err = os.WriteFile(SBOMFile(archive), bom, 0o644) //nolint:gosec // world-readable
	}
	if err != nil {
		return "", fmt.Errorf("bill of materials of %s: %w", ref, err)
	}
	return id, nil
}

// SBOMFile is where the bill of materials of an archive is: NAME.cdx.json beside NAME.tar.
func SBOMFile(archive string) string { return strings.TrimSuffix(archive, ".tar") + ".cdx.json" }

// compile builds a static Linux binary with the flags make build uses, so that
// both share the build cache, except for what would make two builds differ.
func compile(ctx context.Context, root, program, tags, version, out string) error {
	args := append([]string{"build", "-tags", tags, "-o", filepath.Join(out, program)}, artifact.Flags("-buildid= -X "+versionVariable+"="+version)...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/"+program)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/%s: %w\n%s", program, err, out)
	}
	return nil
}

const versionVariable = "github.com/ordergrid/ordergrid/internal/version.Version"

// version is what git calls the checkout, "dev" outside one, as in the Makefile. How far git shortens a commit's name by
// itself depends on what else a clone has in it.
func version(ctx context.Context, root string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--abbrev=12", "--dirty")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "dev"
	}
	return strings.TrimSpace(string(out))
}
