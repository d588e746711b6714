package gridfunction

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Bounds of the files of a function. Those of kind Post are in the log of every partition; a ConfigMap, with the copy of
// a grid, has at most 1 MiB.
const (
	maxFiles      = 1 << 20
	maxPostModule = 256 << 10
	maxPostConfig = 4 << 10
)

// Files are those that a function names, with the digests that it names.
type Files struct {
	Module []byte
	Config []byte // nil without spec.config
}

// Problem is why a function cannot be given to a grid.
type Problem struct {
	Reason string // of condition Valid
	Text   string
	// Passing is true where it may be mended without a change of the function.
	Passing bool
}

func (p *Problem) Error() string { return p.Text }

// FilesDigest names the files of a function in the objects of a grid: 20 hexadecimal digits.
func FilesDigest(spec *api.GridFunctionSpec) string {
	config := ""
	if spec.Config != nil {
		config = spec.Config.SHA256
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(spec.Module.SHA256+" "+config)))[:20]
}

// Read reads the files of a function from the API server. An error is a *Problem, or one of the API server.
func Read(ctx context.Context, live client.Reader, f *api.GridFunction) (*Files, error) {
	files := &Files{}
	var err error
	if files.Module, err = readFile(ctx, live, f, "module", &f.Spec.Module); err != nil {
		return nil, err
	}
	if f.Spec.Config != nil {
		if files.Config, err = readFile(ctx, live, f, "config", f.Spec.Config); err != nil {
			return nil, err
		}
	}
	return files, bounded(f.Spec.Kind, files)
}

func readFile(ctx context.Context, live client.Reader, f *api.GridFunction, field string, file *api.FunctionFile) ([]byte, error) {
	var m corev1.ConfigMap
	switch err := live.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: file.ConfigMap.Name}, &m); {
	case apierrors.IsNotFound(err):
		return nil, &Problem{reasonFileNotFound, fmt.Sprintf("spec.%s: there is no ConfigMap %s in namespace %s; create it, or correct spec.%s.configMap.name", field, file.ConfigMap.Name, f.Namespace, field), true}
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", file.ConfigMap.Name, err)
	}
	content, binary := m.BinaryData[file.ConfigMap.Key]
	if !binary {
		text, there := m.Data[file.ConfigMap.Key]
		if !there {
			return nil, &Problem{reasonFileNotFound, fmt.Sprintf("spec.%s: ConfigMap %s has no key %s; add it, or correct spec.%s.configMap.key", field, file.ConfigMap.Name, file.ConfigMap.Key, field), true}
		}
		content = []byte(text)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != file.SHA256 {
		return nil, &Problem{reasonDigestDiffers, fmt.Sprintf("spec.%s: key %s of ConfigMap %s has sha256 %s, allowed: %s; deploy the file that is named, or name the one that is deployed", field, file.ConfigMap.Key, file.ConfigMap.Name, got, file.SHA256), true}
	}
	return content, nil
}

func bounded(kind api.FunctionKind, files *Files) error {
	large := func(what string, n, most int) error {
		return &Problem{Reason: reasonTooLarge, Text: fmt.Sprintf("%s has %d bytes, allowed for kind %s: %d", what, n, kind, most)}
	}
	switch {
	case kind == api.FunctionPost && len(files.Module) > maxPostModule:
		return large("the module", len(files.Module), maxPostModule)
	case kind == api.FunctionPost && len(files.Config) > maxPostConfig:
		return large("the configuration", len(files.Config), maxPostConfig)
	case len(files.Module)+len(files.Config) > maxFiles:
		return large("the module with its configuration", len(files.Module)+len(files.Config), maxFiles)
	}
	return nil
}
