package gridfunction

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

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
	// Again is when to look again, if it is Passing; 0: lookAgain.
	Again time.Duration
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

// Read reads the files of a function from the API server: a module that was fetched from where it is kept. An error is a
// *Problem, or one of the API server.
func Read(ctx context.Context, live client.Reader, f *api.GridFunction) (*Files, error) {
	files := &Files{}
	var err error
	module := api.FunctionFile{SHA256: f.Spec.Module.SHA256}
	if f.Spec.Module.Fetched() {
		module.ConfigMap = api.ConfigMapFile{Name: api.FunctionModuleConfigMap(f.Name, f.Spec.Module.SHA256), Key: moduleKey}
	} else {
		module.ConfigMap = *f.Spec.Module.ConfigMap
	}
	var problem *Problem
	files.Module, err = readFile(ctx, live, f, "module", &module)
	switch {
	case f.Spec.Module.Fetched() && errors.As(err, &problem) && problem.Reason == reasonFileNotFound:
		return nil, &Problem{Reason: reasonFetchFailed, Text: fmt.Sprintf("ConfigMap %s with the module that was fetched is gone; it is fetched again", module.ConfigMap.Name), Passing: true}
	case err != nil:
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
	content, err := readKey(ctx, live, f.Namespace, "spec."+field+".configMap", &file.ConfigMap)
	if err != nil {
		return nil, err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != file.SHA256 {
		return nil, &Problem{Reason: reasonDigestDiffers, Text: fmt.Sprintf("spec.%s: key %s of ConfigMap %s has sha256 %s, allowed: %s; deploy the file that is named, or name the one that is deployed", field, file.ConfigMap.Key, file.ConfigMap.Name, got, file.SHA256), Passing: true}
	}
	return content, nil
}

// readKey reads a key of a ConfigMap that field names.
func readKey(ctx context.Context, live client.Reader, namespace, field string, file *api.ConfigMapFile) ([]byte, error) {
	no := func(format string, args ...any) error {
		return &Problem{Reason: reasonFileNotFound, Text: field + ": " + fmt.Sprintf(format, args...), Passing: true}
	}
	var m corev1.ConfigMap
	switch err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: file.Name}, &m); {
	case apierrors.IsNotFound(err):
		return nil, no("there is no ConfigMap %s in namespace %s; create it, or correct the name", file.Name, namespace)
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", file.Name, err)
	}
	if content, binary := m.BinaryData[file.Key]; binary {
		return content, nil
	}
	text, there := m.Data[file.Key]
	if !there {
		return nil, no("ConfigMap %s has no key %s; add it, or correct the key", file.Name, file.Key)
	}
	return []byte(text), nil
}

// maxModule is the size of a module of a kind.
func maxModule(kind api.FunctionKind) int {
	if kind == api.FunctionPost {
		return maxPostModule
	}
	return maxFiles
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
